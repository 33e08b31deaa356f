/** What Redis answers: text, whole numbers, null, and lists of these. The same in RESP2 and RESP3. */
export type Reply = string | number | null | readonly Reply[]

/** Where the commands for one server go. */
export interface CommandLine {
  /** How often a connection was made; 0 before the first one is ready. */
  readonly epoch: number
  /** @throws UnavailableError when the server can't be reached or refuses */
  connect(): Promise<void>
  /**
   * Sends commands one right after the other over the same connection, and answers as the last one does.
   * Rejects as {@link RedisLink.command} says.
   */
  send(...commands: readonly (readonly string[])[]): Promise<Reply>
  /** Gives up what it has of its own. */
  close(): void
}
