// On every page.

import { keepTimes } from "./times.js";

keepTimes();
