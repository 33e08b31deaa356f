/** Something only the reader can put right; its message is all that is printed. */
export class SetupError extends Error {}
