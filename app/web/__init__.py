"""The web: JSON API, server-sent events, pages. Everything it needs comes in as `parts.WebParts`."""
