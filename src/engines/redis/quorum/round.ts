import type { RequestStatus } from '../../../engine/contract.js'
import type { Tally } from './tally.js'

/** What a server has said in this round; undefined where it was not asked. */
type Answer = 'pending' | 'held' | 'refused' | 'failed' | undefined

/** One time in which a request asks for votes: all that counts for it was asked for since it began. */
export class Round {
  /** By the index of the server. */
  readonly answers: Answer[]
  /** The number that the grant is to have. */
  least: number
  isOverdue = false
  /** Whether those that have not answered are about to be left out. */
  isClosing = false
  readonly failures: Error[] = []
  mismatch: (RequestStatus & { state: 'mismatch' }) | undefined
  readonly resolve: (standing: RequestStatus) => void
  readonly reject: (error: Error) => void

  constructor(
    servers: number,
    least: number,
    resolve: (standing: RequestStatus) => void,
    reject: (error: Error) => void,
  ) {
    this.answers = new Array<Answer>(servers).fill(undefined)
    this.least = least
    this.resolve = resolve
    this.reject = reject
  }

  /** @param isLate whether the server with this index takes longer than it should. */
  tally(isLate: (index: number) => boolean): Tally {
    let held = 0
    let refused = 0
    let failed = 0
    let pending = 0
    let late = 0
    for (const [index, answer] of this.answers.entries()) {
      if (answer === 'held') held++
      else if (answer === 'refused') refused++
      else if (answer === 'failed') failed++
      else if (answer === 'pending') {
        pending++
        if (isLate(index)) late++
      }
    }
    const unasked = this.answers.length - held - refused - failed - pending
    return { held, refused, failed, pending, unasked, overdue: this.isOverdue || late === pending }
  }
}
