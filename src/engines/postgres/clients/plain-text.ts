/**
 * Options of a statement that return each column as the text that the server sent. The caller may have changed how a
 * client parses booleans, JSON or text, and the engine's statements all return text.
 */
export const PG_TEXT = {
  rowMode: 'array',
  types: { getTypeParser: () => (text: string) => text },
} as const

/** The OID of the type `text`. */
const TEXT = 25

/** The same options for PGlite. */
export const PGLITE_TEXT = { rowMode: 'array', parsers: { [TEXT]: (text: string) => text } } as const
