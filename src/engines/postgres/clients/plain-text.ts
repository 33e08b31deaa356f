/**
 * Options of a statement that give each column as the text that the server sent. The caller may have changed how a
 * client reads booleans, JSON or text, and every statement of the engine gives text.
 */
export const PG_TEXT = {
  rowMode: 'array',
  types: { getTypeParser: () => (text: string) => text },
} as const

/** The type `text` of PostgreSQL. */
const TEXT = 25

/** The same for PGlite. */
export const PGLITE_TEXT = { rowMode: 'array', parsers: { [TEXT]: (text: string) => text } } as const
