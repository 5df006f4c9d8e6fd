"""The pages: each is one Struct, which is the whole context of its template, and the routes that fill it."""
