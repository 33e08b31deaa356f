import type { Mutant } from './mutated-copy.js'
import type { Broken } from '../simulation/history.js'

/** A mutant that simulated schedules must find. */
export interface SimulatedMutant extends Mutant {
  /** The promises, one of which it must break first. */
  readonly breaks: readonly Broken[]
}

export const mutants: readonly SimulatedMutant[] = [
  {
    id: 'overtake-waiters',
    description: 'waiters are overtaken',
    wrong: "if (other.request.phase !== 'waiting') ahead.add(other.claim)",
    breaks: ['P4', 'P5'],
  },
  {
    id: 'release-wakes-nobody',
    description: 'a release wakes no waiter',
    wrong: '',
    breaks: ['P5'],
  },
  {
    id: 'repeat-numbers',
    description: 'numbers are repeated',
    wrong: 'return this.#number++ % 2 === 0 ? this.#number : this.#number - 1',
    // A second grant with the same number looks like a later turn of the first grant.
    breaks: ['P1', 'P2', 'P4'],
  },
  {
    id: 'check-first-key-only',
    description: 'only the first key has to be free',
    wrong: 'const blocked = this.#blocked(claims[0]!, undefined, now)',
    breaks: ['P1', 'P4', 'P5'],
  },
  {
    id: 'reserve-first-key-only',
    description: 'only the first key is reserved',
    wrong: '!this.#blocked(request.claims[0]!, request, now)',
    breaks: ['P1', 'P4'],
  },
  {
    id: 'release-any-number',
    description: 'a release needs no number',
    wrong: "if (request?.phase !== 'held') return false",
    breaks: ['P7'],
  },
  {
    id: 'force-release-any-number',
    description: 'a forced release needs no number',
    wrong: "({ request }) => request.phase === 'held'",
    breaks: ['P7'],
  },
  {
    id: 'renew-expired',
    description: 'what has expired can be renewed',
    wrong: "return request?.phase === 'held' && request.number === number ? request : undefined",
    breaks: ['P7', 'P13'],
  },
  {
    id: 'keep-expired',
    description: 'what has expired is not dropped',
    wrong: '',
    breaks: ['P9'],
  },
  {
    id: 'silent-waiter-blocks',
    description: 'a silent waiter blocks what could run beside the holders',
    wrong: 'return false',
    breaks: ['P5', 'P9'],
  },
  {
    id: 'keep-passed-waiter',
    description: 'a silent waiter is left where others have gone past it',
    wrong: '',
    breaks: ['P1'],
  },
  {
    id: 'keep-overtaken-waiter',
    description: 'a silent waiter is left where others were granted at once',
    wrong: '',
    breaks: ['P1'],
  },
  {
    id: 'silent-waiter',
    description: 'a waiter does not tell that it lives',
    wrong: 'const delay = Math.max(status.checkInAfter, 20_000)',
    breaks: ['P4', 'P5', 'P9'],
  },
  {
    id: 'unsigned-waiter',
    description: 'the signs of a box do not name a waiter',
    wrong: '',
    breaks: ['P4', 'P5', 'P6', 'P9'],
  },
  {
    id: 'sign-without-names',
    description: 'a sign covers requests that it does not name',
    wrong: 'for (const { id } of this.#state.requestsOf(session)) this.#cover(id)',
    breaks: ['P4', 'P5', 'P8', 'P9'],
  },
  {
    id: 'sign-serves-nothing',
    description: 'a sign does not serve what has expired',
    wrong: '',
    breaks: ['P5', 'P9'],
  },
  {
    id: 'next-ignored',
    description: 'a sign does not come when a request ends that its first waiter waits for',
    wrong: 'this.#goOn(Infinity)',
    breaks: ['P9'],
  },
  {
    id: 'cancel-keeps-waiter',
    description: 'a cancelled waiter stays in the queues',
    wrong: "if (!request || request.phase === 'waiting') return",
    breaks: ['P4', 'P5', 'P7', 'P8', 'P9'],
  },
  {
    id: 'revoke-keeps-grants',
    description: 'a revoked session keeps what it holds',
    wrong: "for (const request of requests) if (request.phase !== 'held') this.#remove(request)",
    breaks: ['P9'],
  },
  {
    id: 'writer-joins-readers',
    description: 'a writer comes in beside readers',
    wrong: "return this.#first.mode === 'shared' || !conflict(this.#first, claim)",
    breaks: ['P1', 'P4'],
  },
  {
    id: 'extra-permit',
    description: 'there is one permit too many',
    wrong: 'return this.#permits + claim.permits <= claim.max + 1',
    breaks: ['P1', 'P4'],
  },
  {
    id: 'extend-despite-waiters',
    description: 'a grant is kept although others wait',
    wrong: 'const wanted = false',
    breaks: ['P4'],
  },
  {
    id: 'late-deadline',
    description: 'a deadline is counted from the answer',
    wrong: 'const lease = new Lease(asked, this.#set, status.number, duration, now + duration, renew, this)',
    breaks: ['P3'],
  },
  {
    id: 'use-late-grant',
    description: 'a grant is used that came after its deadline',
    wrong: '',
    breaks: ['P3'],
  },
  {
    id: 'miss-wake-up',
    description: 'a wake-up is missed while an answer is awaited',
    wrong: '',
    breaks: ['P5'],
  },
  {
    id: 'keep-unused-grant',
    description: 'a grant without waiters is kept',
    wrong: 'if (!request) return',
    breaks: ['P8'],
  },
  {
    id: 'endless-turns',
    description: 'a grant is handed on for as long as there are callers',
    wrong: 'return this.turn + 1 - this.#firstTurn < MAX_TURNS * 10',
    breaks: ['P4'],
  },
  {
    id: 'late-renewal',
    description: 'a renewal counts from its answer',
    wrong: 'lease.deadline = Math.max(lease.deadline, this.#clock.now() + duration)',
    breaks: ['P3'],
  },
  {
    id: 'timer-only-deadline',
    description: 'a passed deadline is found by a timer only',
    wrong: `if (now >= lease.deadline + 10) this.lose(lease, \`its lease of \${lease.duration} ms has expired\`)
      else if (now >= this.#certainUntil()) this.lose(lease, 'its session may have expired')`,
    breaks: ['P1', 'P3'],
  },
  {
    id: 'forget-reservations',
    description: 'reservations are never looked after',
    wrong: 'void keys',
    breaks: ['P9'],
  },
  {
    id: 'commit-ignores-locks',
    description: 'a commit does not look whether its locks still hold',
    wrong: '',
    breaks: ['P13'],
  },
  {
    id: 'commit-ignores-versions',
    description: 'a commit does not check for writes that bypassed its locks',
    wrong: "if (found[index]!.version === -1) return { state: 'conflict', key, found: found[index]! }",
    breaks: ['P13'],
  },
  {
    id: 'commit-without-ids',
    description: 'ids of changes are not recorded',
    wrong: '',
    breaks: ['P13'],
  },
  {
    id: 'watcher-never-polls',
    description: 'a watcher never looks by itself',
    wrong: '',
    breaks: ['P5'],
  },
  {
    id: 'no-change-hints',
    description: 'no session gets a hint of changes',
    wrong: 'void [session, key]',
    breaks: ['P5'],
  },
  {
    id: 'abort-after-begin',
    description: 'a transaction can still be aborted when its function has begun',
    wrong: '',
    breaks: ['P13'],
  },
  {
    id: 'twin-does-not-wait',
    description: 'a twin in the same batch is applied, too',
    wrong: '',
    breaks: ['P13'],
  },
]
