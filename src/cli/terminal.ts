/** Where a command writes: the process, or what a test puts in its place. */
export interface Terminal {
  /** For results, and nothing else. */
  readonly stdout: { write(text: string): unknown }
  /** For complaints. */
  readonly stderr: { write(text: string): unknown }
}
