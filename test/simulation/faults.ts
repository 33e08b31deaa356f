import type { Mistake } from './faulty-copy.js'
import type { Broken } from './history.js'

/** A mistake, and what comes of it. */
export interface Fault extends Mistake {
  /** The promises that it may break first. */
  readonly breaks: readonly Broken[]
}

const TABLE = 'engine/lock-table.ts'
const LINE = 'core/local-queue.ts'
const LEASE = 'core/lease.ts'
const STATE = 'engine/kit/memory-state.ts'
const COMMIT = 'engine/commit.ts'
const BATCH = 'store/batch.ts'
const WATCHERS = 'core/watchers.ts'

export const faults: readonly Fault[] = [
  {
    name: 'waiters are overtaken',
    file: TABLE,
    text: 'ahead.add(other.claim)',
    wrong: "if (other.request.phase !== 'waiting') ahead.add(other.claim)",
    breaks: ['P4', 'P5'],
  },
  {
    name: 'a release wakes nobody',
    file: TABLE,
    text: 'this.#serveKeysOf(request, now)\n    return now < request.expires',
    wrong: 'return now < request.expires',
    breaks: ['P5'],
  },
  {
    name: 'numbers are repeated',
    file: STATE,
    text: 'return ++this.#number',
    wrong: 'return this.#number++ % 2 === 0 ? this.#number : this.#number - 1',
    // The second grant of a number looks like a later turn of the first.
    breaks: ['P1', 'P2', 'P4'],
  },
  {
    name: 'only the first key has to be free',
    file: TABLE,
    text: 'operation.claims.some(claim => this.#blocked(claim, undefined, now))',
    wrong: 'this.#blocked(operation.claims[0]!, undefined, now)',
    breaks: ['P1', 'P4', 'P5'],
  },
  {
    name: 'only the first key is reserved',
    file: TABLE,
    text: 'request.claims.every(other => !this.#blocked(other, request, now))',
    wrong: '!this.#blocked(request.claims[0]!, request, now)',
    breaks: ['P1', 'P4'],
  },
  {
    name: 'a release needs no number',
    file: TABLE,
    text: "if (request?.phase !== 'held' || request.number !== number) return false",
    wrong: "if (request?.phase !== 'held') return false",
    breaks: ['P7'],
  },
  {
    name: 'a forced release needs no number',
    file: TABLE,
    text: "({ request }) => request.phase === 'held' && request.number === number",
    wrong: "({ request }) => request.phase === 'held'",
    breaks: ['P7'],
  },
  {
    name: 'what has expired can be renewed',
    file: TABLE,
    text: "request?.phase === 'held' && request.number === number && now < request.expires",
    wrong: "request?.phase === 'held' && request.number === number",
    breaks: ['P7', 'P13'],
  },
  {
    name: 'what has expired is not dropped',
    file: TABLE,
    text: 'if (isOver(request, now)) return request\n',
    wrong: '',
    breaks: ['P9'],
  },
  {
    name: 'a silent waiter blocks what could run beside the holders',
    file: TABLE,
    text: "return phase === 'waiting' && now >= expires",
    wrong: 'return false',
    breaks: ['P5', 'P9'],
  },
  {
    name: 'a silent waiter is left where others have gone past it',
    file: TABLE,
    text: 'if (passed) return passed',
    wrong: '',
    breaks: ['P1'],
  },
  {
    name: 'a silent waiter is left where others were granted at once',
    file: TABLE,
    text: 'if (!blocked) this.#goPast(operation.claims, now)',
    wrong: '',
    breaks: ['P1'],
  },
  {
    name: 'a waiter does not tell that it lives',
    file: LINE,
    text: 'Math.min(lookAgain, this.#untilHeard(pending))',
    wrong: 'Math.max(lookAgain, 20_000)',
    breaks: ['P4', 'P5', 'P9'],
  },
  {
    name: 'a cancelled waiter stays in the queues',
    file: TABLE,
    text: 'if (!request) return\n    this.#state.remove(request)',
    wrong: "if (!request || request.phase === 'waiting') return\n    this.#state.remove(request)",
    breaks: ['P4', 'P5', 'P7', 'P8', 'P9'],
  },
  {
    name: 'a revoked session keeps what it holds',
    file: TABLE,
    text: 'for (const request of requests) this.#remove(request)',
    wrong: "for (const request of requests) if (request.phase !== 'held') this.#remove(request)",
    breaks: ['P9'],
  },
  {
    name: 'a writer comes in beside readers',
    file: TABLE,
    text: 'return !conflict(this.#first, claim)',
    wrong: "return this.#first.mode === 'shared' || !conflict(this.#first, claim)",
    breaks: ['P1', 'P4'],
  },
  {
    name: 'there is one permit too many',
    file: TABLE,
    text: '<= claim.max',
    wrong: '<= claim.max + 1',
    breaks: ['P1', 'P4'],
  },
  {
    name: 'a grant is kept although others wait',
    file: TABLE,
    text: 'const wanted = request.claims.some(claim => this.#awaited(claim.key, now))',
    wrong: 'const wanted = false',
    breaks: ['P4'],
  },
  {
    name: 'a deadline is counted from the answer',
    file: LINE,
    text: 'number, duration, sentAt + duration,',
    wrong: 'number, duration, this.clock.now() + duration,',
    breaks: ['P3'],
  },
  {
    name: 'a grant is used that came after its deadline',
    file: LINE,
    text: 'if (now >= sentAt + request.lease) {',
    wrong: 'if (sentAt + request.lease < 0) {',
    breaks: ['P3'],
  },
  {
    name: 'a wake-up is missed while an answer is awaited',
    file: LINE,
    text: 'else pending.woken = true',
    wrong: '',
    breaks: ['P5'],
  },
  {
    name: 'a grant that nobody waits for any more is kept',
    file: LINE,
    text: 'if (!waiter) return this.#takeOut(pending)',
    wrong: 'if (!waiter) return',
    breaks: ['P8'],
  },
  {
    name: 'a grant is handed on for as long as there are callers',
    file: LINE,
    text: 'next - this.#firstTurn < MOST_TURNS && now - this.#turnsSince < LONGEST_TURNS',
    wrong: 'next - this.#firstTurn < MOST_TURNS * 10',
    breaks: ['P4'],
  },
  {
    name: 'a renewal counts from its answer',
    file: LEASE,
    text: 'Math.max(lease.deadline, sentAt + duration)',
    wrong: 'Math.max(lease.deadline, this.#clock.now() + duration)',
    breaks: ['P3'],
  },
  {
    name: 'a passed deadline is found by a timer only',
    file: LEASE,
    text: 'if (now >= lease.deadline) this.lose(lease, `its lease',
    wrong: 'if (now >= lease.deadline + 10) this.lose(lease, `its lease',
    breaks: ['P1', 'P3'],
  },
  {
    name: 'reservations are never looked after',
    file: 'core/session.ts',
    text: "if (!this.ending) this.background({ type: 'serve', keys })",
    wrong: 'void keys',
    breaks: ['P9'],
  },
  {
    name: 'a commit does not look whether its locks still hold',
    file: COMMIT,
    text: "if (!guardHolds) return { state: 'lost' }",
    wrong: '',
    breaks: ['P13'],
  },
  {
    name: 'a commit does not look whether anybody has written round its locks',
    file: COMMIT,
    text: 'if (found[index]!.version !== version)',
    wrong: 'if (found[index]!.version === -1)',
    breaks: ['P13'],
  },
  {
    name: 'ids of changes are not recorded',
    file: COMMIT,
    text: 'for (const { key, id } of commit.record) state.record(key, id, commit.retention)',
    wrong: '',
    breaks: ['P13'],
  },
  {
    name: 'a watcher never looks by itself',
    file: WATCHERS,
    text: '      this.#lookRegularly()\n      this.missed()',
    wrong: '      this.#lookRegularly()',
    breaks: ['P5'],
  },
  {
    name: 'nobody is told of changes',
    file: 'engine/state-machine.ts',
    text: "this.#tell({ type: 'changed', session, key })",
    wrong: 'void [session, key]',
    breaks: ['P5'],
  },
  {
    name: 'a transaction can still be aborted when its function has begun',
    file: BATCH,
    text: 'member.stopWaiting?.()',
    wrong: '',
    breaks: ['P13'],
  },
  {
    name: 'a twin in the same batch does not wait for the commit',
    file: BATCH,
    text: 'for (const text of texts) underWay.add(text)',
    wrong: 'for (const text of texts) committed.add(text)',
    breaks: ['P13'],
  },
]
