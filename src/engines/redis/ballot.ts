/**
 * Makes an enqueue, a check-in or a renewal a vote. The request asks several independent servers, and is granted when
 * enough of them have voted for it.
 */
export interface Ballot {
  /** The place of the request in the queues, the same on all servers: a whole number. Lower places are served first. */
  readonly order: number
  /** The minimum number of its grant: a whole number. */
  readonly least: number
}
