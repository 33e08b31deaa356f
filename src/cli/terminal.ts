import type { Readable } from 'node:stream'

/** The streams of a command: those of the process, or those of a test. */
export interface Terminal {
  readonly stdin: Readable
  /** For results only. */
  readonly stdout: Output
  readonly stderr: { readonly isTTY?: boolean; write(text: string): unknown }
  /** Aborts when the reader of the results has closed the pipe, as `head` does. */
  readonly unread: AbortSignal
}

export interface Output {
  readonly isTTY?: boolean
  /** Width and height of the terminal in characters; undefined if it is not a terminal. */
  readonly columns?: number | undefined
  readonly rows?: number | undefined
  /** Calls back when the text is written, with an error if that failed. */
  write(text: string | Uint8Array, written?: (error?: Error | null) => void): unknown
}
