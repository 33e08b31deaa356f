import type { Mutant } from './mutated-copy.js'

/** Mutants that the search of the limiter's state machine must find. */
export const limitMutants: readonly Mutant[] = [
  { id: 'two-calls', description: 'a call does not wait for the reply to another', wrong: '' },
  { id: 'quiet-without-timer', description: 'waiters beyond the horizon have no timer', wrong: '' },
  { id: 'permits-without-timer', description: 'reserved permits have no timer', wrong: '' },
  {
    id: 'permits-wait-for-tries',
    description: 'permits wait behind a decision that has no answer yet',
    wrong: '',
  },
  { id: 'returns-without-timer', description: 'permits that could not be returned have no timer', wrong: '' },
  { id: 'late-permit', description: 'permits are used after their time', wrong: '' },
  {
    id: 'early-permit',
    description: 'permits are used before their time',
    wrong: `for (let { first } = this.reserved; first;) {
      const waiter = this.#callers.firstFor(costOf(first), false)
      if (!waiter) return undefined
      this.reserved.take(waiter.cost)
      this.#callers.leave(waiter)
      this.left()
      return { waiter, at: first.engineAt }
    }`,
  },
  {
    id: 'delay-without-waiters',
    description: 'a delay for waiters that have left applies to others',
    wrong: 'if (this.#callers.waiting === 0 && !this.outage) this.pace.open()',
  },
  { id: 'permits-above-limit', description: 'permits above a lowered limit are kept', wrong: '' },
  { id: 'outdated-permits-lost', description: 'a reply under a greater limit is dropped', wrong: '' },
  {
    id: 'returns-twice',
    description: 'permits are returned again although they may have been returned',
    wrong: 'this.reserved.giveBack(request.returns)',
  },
  { id: 'endless-tries', description: 'a try is requested again and again', wrong: '' },
  { id: 'reply-without-step', description: 'nothing follows a reply', wrong: "this.due = 'none'" },
  { id: 'tries-kept', description: 'a refused try keeps waiting', wrong: '' },
]
