/** What one server has of a request, as far as is known here. */
export class Vote {
  /** Given to it, behind others in the queue, or nothing. */
  state: 'held' | 'queued' | 'none' = 'none'
  /** Whether anything of the request may be there, so that it has to be taken out in the end. */
  isEntered = false
  /** Of the vote, where it is held. */
  number = 0
  /** In the queue: how many stand before it, and when looking again is worth while: milliseconds from the answer. */
  place = 0
  lookAgain = 0
  /** How often the server was asked; only the answer to the newest question counts. */
  asked = 0
  /** Whether that answer is still on its way. */
  isPending = false
  /** The server has reserved it since it was asked last. */
  isWoken = false
  /** Somebody with an earlier place waits behind it, as the server has said since it was asked last. */
  isWanted = false
  /** Whether the server's hints were heard when it was asked last. */
  isHeard = false

  /** Whether it certainly stands in the queue, and has not been reserved since. */
  get isQueued(): boolean {
    return this.state === 'queued' && !this.isPending && !this.isWoken
  }
}
