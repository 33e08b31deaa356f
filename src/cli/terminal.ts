import type { Readable } from 'node:stream'

/** What a command reads and where it writes: the process, or what a test puts in its place. */
export interface Terminal {
  readonly stdin: Readable
  /** For results, and nothing else. */
  readonly stdout: Output
  /** For complaints. */
  readonly stderr: { readonly isTTY?: boolean; write(text: string): unknown }
  /** Aborts when the results have no reader any more, as after `head`. */
  readonly unread: AbortSignal
}

/** Where results go. */
export interface Output {
  /** Whether a person looks at it. */
  readonly isTTY?: boolean
  /** How many characters fit a line, and how many lines the screen; undefined where it is none. */
  readonly columns?: number | undefined
  readonly rows?: number | undefined
  /** Calls back when it is written, with an error when it could not be. */
  write(text: string | Uint8Array, written?: (error?: Error | null) => void): unknown
}
