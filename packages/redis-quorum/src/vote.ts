import { UnavailableError } from 'signalbox'
import type { LockRequest, RequestStatus } from 'signalbox/engine'
import type { VoteTerms } from 'signalbox/redis'
import { leaseOnServer, type Voter } from './voter.js'

/** A request, as it is sent to every server. */
export interface Candidacy {
  /** With shared claims after a downgrade. */
  request: LockRequest
  /** Its place in the queues, the same on all servers. */
  readonly order: number
  /** The lease by the clock of its caller, in milliseconds. */
  lease: number
  /** The wait in milliseconds; 0 if servers must not queue it. */
  wait: number
}

/** Receives the answer of a server: the status of the request there, or an error. */
type Answered = (answer: RequestStatus | Error) => void

/** The known status of a request on one server, and the questions to that server. */
export class Vote {
  readonly voter: Voter
  /** With `unknown`, the server may have the request. */
  state: 'absent' | 'unknown' | 'queued' | 'held' = 'absent'
  /** The number of the vote, if it is held. */
  number = 0
  /** In the queue: number of requests ahead of it. */
  place = 0
  /** In the queue: when to check in, in milliseconds after the answer. */
  checkInAfter = 0
  /** How many questions the server was asked. Only the answer to the last one counts. */
  asked = 0
  /** Whether that answer is still on its way. */
  isPending = false
  /** Whether the server has reserved the request since it was asked last. */
  isReserved = false
  /**
   * Whether the server has reported, since it was asked last, that a request with an earlier place waits for this vote.
   */
  isWanted = false
  /** Whether the server's hints were received when it was asked last. */
  receivesHints = false
  /** Whether the server has queued it: then signs of life may keep it there. */
  #hasWaited = false
  readonly #candidacy: Candidacy

  constructor(voter: Voter, candidacy: Candidacy) {
    this.voter = voter
    this.#candidacy = candidacy
  }

  /** Whether the server holds it, and nothing was asked since. */
  get isHeld(): boolean {
    return this.state === 'held' && !this.isPending
  }

  /** Whether it is certainly in the queue, and was not reserved since. */
  get isQueued(): boolean {
    return this.state === 'queued' && !this.isPending && !this.isReserved
  }

  /**
   * Asks the server for its vote.
   * @param least minimum number of the vote.
   * @param answered is called with the answer, unless another question has followed by then.
   */
  ask(least: number, answered: Answered): void {
    const { request, order, lease, wait } = this.#candidacy
    const isNew = this.state === 'absent'
    if (isNew) this.state = 'unknown'
    this.isReserved = false
    this.isWanted = false
    this.receivesHints = this.voter.receivesHints
    const type = isNew ? 'enqueue' : 'checkIn'
    const asked = this.voter.submit({ type, request, lease: leaseOnServer(lease), wait }, { order, least })
    this.#follow(asked, answer => {
      if (answer instanceof UnavailableError && isNew) this.state = 'absent'
      // The server has lost the request, or has dropped it while its hints were not received. It gets its old place
      // again.
      if (!isNew && !(answer instanceof Error) && answer.state === 'gone') this.ask(least, answered)
      else answered(answer)
    })
  }

  /** Raises the number of a held vote. Calls `answered` as {@link ask} does. */
  raise(number: number, answered: Answered): void {
    const { id } = this.#candidacy.request
    const raised = this.#submitRenewal(number)
    this.#follow(
      raised.then(isHeld => (isHeld ? { state: 'held', id, number } : { state: 'busy' })),
      answered,
    )
  }

  /** Renews a held vote, and raises its number to that of the grant. False: the server no longer has it. */
  async renew(number: number): Promise<boolean> {
    const { asked } = this
    const isHeld = await this.#submitRenewal(number)
    if (this.asked !== asked || !this.isHeld) return isHeld
    if (isHeld) this.#voted(Math.max(this.number, number))
    else this.state = 'absent'
    return isHeld
  }

  /** Releases a held vote. False: the server no longer had it. */
  async release(): Promise<boolean> {
    const { request, lease } = this.#candidacy
    this.state = 'absent'
    try {
      return await this.voter.submit({ type: 'release', request, number: this.number })
    } catch (error) {
      this.voter.withdraw(request, lease).catch(() => undefined)
      throw error
    }
  }

  /** Makes a held vote shared. False: the server no longer has it. */
  downgrade(): Promise<boolean> {
    const { request } = this.#candidacy
    return this.voter.submit({ type: 'downgrade', request, number: this.number })
  }

  /**
   * Removes the request, in any phase, from this server. Undefined if there is nothing to remove. A rejection need not
   * be handled.
   */
  withdraw(): Promise<void> | undefined {
    if (this.state === 'absent' && !this.isPending) return undefined
    const { request, lease } = this.#candidacy
    this.state = 'absent'
    // A pending answer comes before the withdrawal, so it no longer counts.
    this.asked++
    this.isPending = false
    const withdrawn = this.voter.withdraw(request, lease, this.#hasWaited)
    withdrawn.catch(() => undefined)
    return withdrawn
  }

  #submitRenewal(number: number): Promise<boolean> {
    const { request, order, lease } = this.#candidacy
    const vote: VoteTerms | undefined = this.number < number ? { order, least: number } : undefined
    return this.voter.submit(
      { type: 'renew', request, number: this.number, lease: leaseOnServer(lease) },
      vote,
    )
  }

  #follow(question: Promise<RequestStatus>, answered: Answered): void {
    const asked = ++this.asked
    this.isPending = true
    const settle = (answer: RequestStatus | Error): void => {
      this.voter.isLate = answer instanceof Error
      if (this.asked !== asked) return
      this.isPending = false
      if (answer instanceof Error) {
        if (this.state === 'held') this.state = 'unknown'
      } else this.#note(answer)
      answered(answer)
    }
    question.then(settle, (error: unknown) => settle(error as Error))
  }

  #note(status: RequestStatus): void {
    const { state } = status
    this.state = state === 'held' || state === 'queued' ? state : 'absent'
    if (state === 'held') this.#voted(status.number)
    if (state !== 'queued') return
    this.#hasWaited = true
    this.place = status.place
    this.checkInAfter = status.checkInAfter
  }

  #voted(number: number): void {
    this.number = number
    this.voter.voted(number)
  }
}
