/**
 * What makes an enqueue, a claim or a renewal a vote: the request asks several independent servers, and is granted when
 * most of them have.
 */
export interface Ballot {
  /**
   * Its place in the queues, the same on all servers: a whole number. The request with the lesser one is served first.
   */
  readonly order: number
  /** The least number that its grant may get: a whole number. */
  readonly least: number
}
