import { describe, expect, test } from 'vitest'
import { systemClock } from '../../src/base/clock.js'
import { IndeterminateError, UnavailableError } from '../../src/base/errors.js'
import type { Engine, Operation, OutcomeOf, RecordedId } from '../../src/engine/contract.js'
import type { MemoryState } from '../../src/engine/kit/memory-state.js'
import type { Entry, Request } from '../../src/engine/table-state.js'
import type { AnyOutcome } from '../../packages/conformance/src/fault-injecting-engine.js'
import { conformance } from '../../packages/conformance/src/index.js'
import { mistaken, type Mistake } from './mistaken-engine.js'

type Of<T extends Operation['type']> = Extract<Operation, { type: T }>

/** Changes the outcomes of operations of one type. */
function outcomes<T extends Operation['type']>(
  type: T,
  change: (outcome: OutcomeOf<Of<T>>, operation: Of<T>) => OutcomeOf<Of<T>>,
): Mistake {
  return {
    client: () => async (operation, execute) => {
      const outcome = await execute()
      return operation.type === type ? change(outcome as OutcomeOf<Of<T>>, operation as Of<T>) : outcome
    },
  }
}

/** Replaces operations of one type. */
function instead<T extends Operation['type']>(
  type: T,
  execute: (operation: Of<T>, engine: Engine) => unknown,
): Mistake {
  return {
    client: (_, wrapped) => async (operation, otherwise) =>
      operation.type === type ? (execute(operation as Of<T>, wrapped) as AnyOutcome) : otherwise(),
  }
}

/** Replaces the repetition of an operation whose reply was lost. */
function afterLoss<T extends Operation['type']>(
  type: T,
  repeat: (operation: Of<T>, engine: Engine) => unknown,
): Mistake {
  return instead(type, async (operation, engine) => {
    try {
      return await engine.submit(operation)
    } catch (error) {
      if (!(error instanceof IndeterminateError)) throw error
      // By then the client is connected again.
      await new Promise(setImmediate)
      return repeat(operation, engine)
    }
  })
}

/** Replaces the expiry of a request each time that the request changes. */
function expiry(change: (request: Request) => number): Mistake {
  return {
    server(state) {
      const changed = state.changed.bind(state)
      state.changed = request => {
        request.expires = change(request)
        changed(request)
      }
    },
  }
}

/**
 * Serves waiters in another order.
 * @param rank called once when a request arrives; the request with the lowest rank is served first
 */
function servedBy(rank: (request: Request) => number): Mistake {
  return {
    server(state) {
      const ranks = new Map<string, number>()
      const append = state.append.bind(state)
      state.append = request => {
        ranks.set(request.id, rank(request))
        append(request)
      }
      const rankOf = ({ request: { id, phase } }: Entry): number =>
        phase === 'waiting' ? ranks.get(id)! : -Infinity
      const queue = state.queue.bind(state)
      state.queue = key => queue(key)?.toSorted((one, other) => rankOf(one) - rankOf(other))
    },
  }
}

/** Returns a function that numbers the sessions of requests, in the order of their first requests. */
function sessionNumber(): (request: Request) => number {
  const sessions: string[] = []
  return ({ session }) => {
    if (!sessions.includes(session)) sessions.push(session)
    return sessions.indexOf(session)
  }
}

/**
 * Forgets IDs.
 * @param isKept called for an ID that the engine should keep, with all IDs recorded so far; false forgets it
 */
function ids(
  isKept: (id: Recorded, all: readonly Recorded[]) => boolean,
  more?: (state: MemoryState, all: Recorded[]) => void,
): Mistake {
  return {
    server(state) {
      const all: Recorded[] = []
      const record = state.record.bind(state)
      const recorded = state.recorded.bind(state)
      state.record = (key, id, retention) => {
        all.push({ key, id, at: systemClock.now(), retention })
        record(key, id, retention)
      }
      state.recorded = ids =>
        recorded(ids).map((isRecorded, index) => {
          const { key, id } = ids[index]!
          const found = all.findLast(each => each.key === key && each.id === id)
          return isRecorded && found !== undefined && isKept(found, all)
        })
      more?.(state, all)
    },
  }
}

interface Recorded extends RecordedId {
  readonly at: number
  readonly retention: number
}

/** Numbers the grants of a key from 1 again after it was unused for this time, in milliseconds. */
function numbersKept(during: (request: Request) => number): Mistake {
  return {
    server(state) {
      const numbers = new Map<string, { number: number; until: number }>()
      const changed = state.changed.bind(state)
      state.changed = request => {
        const { key } = request.claims[0]!
        const now = systemClock.now()
        const last = numbers.get(key)
        if (request.phase === 'held') {
          if (request.number > EARLY) request.number = last && now < last.until ? last.number + 1 : 1
          numbers.set(key, { number: request.number, until: now + during(request) })
        }
        changed(request)
      }
    },
  }
}
/** The numbers of a memory engine are greater than this. */
const EARLY = 1e6

const uses = (request: Request, mode: string): boolean => request.claims.some(claim => claim.mode === mode)

/** Mistakes, each with a check that must find it. */
const mistakes: readonly (readonly [what: string, check: string, mistake: Mistake])[] = [
  [
    'grants a held lock',
    'P1 mutual exclusion > a mutex has one holder at a time, and each later holder has a greater token',
    outcomes('enqueue', (outcome, { request: { id } }) =>
      outcome.state === 'queued' ? { state: 'held', id, number: Date.now() } : outcome,
    ),
  ],
  [
    'lets two sets of keys overlap',
    'P1 mutual exclusion > sets of keys exclude each other only where they overlap',
    outcomes('enqueue', (outcome, { request: { id } }) =>
      outcome.state === 'busy' ? { state: 'held', id, number: Date.now() } : outcome,
    ),
  ],
  [
    'counts a lease from when a waiter asked',
    'P1 mutual exclusion > a holder that had to wait has lost its grant before a caller of another box gets one',
    expiry(({ phase, expires, since, lease }) => (phase === 'held' ? since + lease : expires)),
  ],
  [
    'gives all grants the same number',
    'P2 tokens increase > tokens increase after all boxes were closed and new ones opened',
    outcomes('enqueue', outcome => (outcome.state === 'held' ? { ...outcome, number: 1 } : outcome)),
  ],
  [
    'forgets the number of a key at the end of a lease',
    'P2 tokens increase > tokens increase after every way in which a grant can end',
    numbersKept(({ lease }) => lease),
  ],
  [
    'forgets the number of a key some time after a lease',
    'P2 tokens increase > tokens increase after a key was not used for longer than its lease',
    numbersKept(({ lease }) => 2 * lease),
  ],
  [
    'claims a lock when it is woken, before the box asks',
    'P3 conservative deadlines > the deadline of a far waiter has passed before the next caller gets the lock',
    {
      client(engine, wrapped) {
        const waiting = new Map<string, Of<'enqueue'>>()
        const claimed = new Map<string, Promise<AnyOutcome>>()
        engine.delivers = hint => {
          const asked = hint.type === 'wake' ? waiting.get(hint.id) : undefined
          if (!asked) return true
          waiting.delete(hint.id)
          const claiming = Promise.resolve(wrapped.submit({ ...asked, type: 'checkIn' }))
          claimed.set(hint.id, claiming)
          void claiming.then(() => engine.forge(hint))
          return false
        }
        return async (operation, execute) => {
          if (operation.type === 'enqueue') waiting.set(operation.request.id, operation)
          if (operation.type !== 'checkIn') return execute()
          const claiming = claimed.get(operation.request.id)
          claimed.delete(operation.request.id)
          return claiming ?? execute()
        }
      },
    },
  ],
  [
    'answers renewals by itself while it is not connected',
    'P3 conservative deadlines > the deadline of a box that is cut off has passed before the next caller gets the lock',
    instead('renew', async (operation, engine) => {
      try {
        return await engine.submit(operation)
      } catch {
        return true
      }
    }),
  ],
  [
    'serves all waiters of a box one after another',
    'P4 first come, first served > boxes are served in order of arrival, also if each asks several times',
    servedBy(sessionNumber()),
  ],
  [
    'orders waiters by the wall clocks of their processes',
    'P11 wall clocks may jump > a wall clock that is set back puts no caller ahead of others',
    servedBy(() => Date.now()),
  ],
  [
    'forgets the waiters of a connection that breaks',
    'P5 waiters learn of lost hints > a waiter whose connections were cut keeps its place, and is woken',
    {
      cut(_, state, waiting) {
        for (const { id } of waiting) state.remove(state.request(id)!)
      },
    },
  ],
  [
    'does not subscribe again after its connection broke',
    'P5 waiters learn of lost hints > a waiter whose connections were cut keeps its place, and is woken',
    { cut: engine => (engine.delivers = () => false) },
  ],
  [
    'waits for hints before it has subscribed to them',
    'P5 waiters learn of lost hints > the first waiters of new boxes are woken',
    {
      // The first hint is lost, as if the box had not subscribed yet.
      client(engine) {
        let isSubscribed = false
        engine.delivers = ({ type }) => {
          const isDelivered = type !== 'wake' || isSubscribed
          isSubscribed ||= type === 'wake'
          return isDelivered
        }
        return (_, execute) => execute()
      },
    },
  ],
  [
    'watches a key before it has subscribed to its changes',
    'P13 commits are atomic and durable > watching > a watch yields a change that comes right after the first entry',
    instead('watch', (operation, engine) => {
      setTimeout(() => void engine.submit(operation), 1000)
      return undefined
    }),
  ],
  [
    'says that it released what was gone',
    'P7 a release affects only its own grant > a release that finds the grant gone rejects with a LostError, and is published as a loss',
    outcomes('release', () => true),
  ],
  [
    'frees a key of any holder when the reply to a release was lost',
    'P7 a release affects only its own grant > a release whose connection breaks before the reply does not affect the next holder',
    afterLoss('release', async ({ request }, engine) => {
      const { key } = request.claims[0]!
      const [holder] = await engine.submit({ type: 'inspect', prefix: key, exact: true })
      return engine.submit({ type: 'forceRelease', key, number: holder!.number })
    }),
  ],
  [
    'enters a request twice when the reply was lost',
    'P8 giving up leaves nothing behind > a request for a held lock whose connection breaks before the reply enters once',
    afterLoss('enqueue', async (operation, engine) => {
      const request = { ...operation.request, id: `${operation.request.id} again` }
      return { ...(await engine.submit({ ...operation, request })), id: operation.request.id }
    }),
  ],
  [
    'keeps the permits of a dead caller',
    "P9 dead processes lose their locks > a silent holder's keys are free after its lease",
    expiry(request => (request.phase === 'held' && uses(request, 'permits') ? Infinity : request.expires)),
  ],
  [
    'keeps permits for a dead waiter',
    'P9 dead processes lose their locks > a silent waiter delays the waiters behind it by one claim window at most',
    expiry(request =>
      request.phase === 'reserved' && uses(request, 'permits') ? Infinity : request.expires,
    ),
  ],
  [
    'keeps nothing',
    'P13 commits are atomic and durable > values > any box reads a value as it was written, and every write has a new version',
    instead('commit', ({ writes }) => ({
      state: 'committed',
      versions: writes.map((_, index) => index + 1),
    })),
  ],
  [
    'repeats a change when the reply was lost',
    'P13 commits are atomic and durable > put: a change whose connection breaks before the reply is not made again, nor reported as not made',
    afterLoss('commit', (operation, engine) => engine.submit(operation)),
  ],
  [
    'repeats a comparison when the reply was lost',
    'P13 commits are atomic and durable > compareAndSet: a change whose connection breaks before the reply is not made again, nor reported as not made',
    afterLoss('commit', (operation, engine) => engine.submit(operation)),
  ],
  [
    'reports a commit as not made when the reply was lost',
    'P13 commits are atomic and durable > transaction: a change whose connection breaks before the reply is not made again, nor reported as not made',
    afterLoss('commit', () => Promise.reject(new UnavailableError('the connection broke'))),
  ],
  [
    'reports a commit as made when the reply was lost',
    'P13 commits are atomic and durable > transaction: a change that is lost with its connection is not reported as made',
    afterLoss('commit', ({ writes }) => ({ state: 'committed', versions: writes.map(() => 1) })),
  ],
  [
    'keeps only the newest IDs',
    'P13 commits are atomic and durable > all IDs of a key are kept, however many there are',
    ids((id, all) => all.slice(-100).includes(id)),
  ],
  [
    'keeps IDs for half of their retention',
    'P13 commits are atomic and durable > an ID is kept until its retention is over',
    ids(({ at, retention }) => systemClock.now() < at + retention / 2),
  ],
  [
    'keeps IDs for a second at most',
    'P13 commits are atomic and durable > an ID is kept for its own retention, regardless of its key',
    ids(({ at }) => systemClock.now() < at + 1000),
  ],
  [
    'keeps IDs only while the box is open that has recorded them',
    'P13 commits are atomic and durable > an ID is kept for its own retention, regardless of its key',
    ids(
      (id, all) => all.includes(id),
      (state, all) => {
        const leave = state.leave.bind(state)
        state.leave = session => {
          all.length = 0
          leave(session)
        }
      },
    ),
  ],
  [
    'compares only the versions of the keys that it writes',
    "P13 commits are atomic and durable > one of two transactions that read each other's key sees the other's commit, each on its own: its own key is written, the other is present",
    instead('commit', (commit, engine) => {
      const expect = commit.expect.filter(({ key }) => commit.writes.some(write => write.key === key))
      return engine.submit({ ...commit, expect })
    }),
  ],
  [
    'does not compare keys that are absent',
    "P13 commits are atomic and durable > one of two transactions that read each other's key sees the other's commit, each on its own: its own key is written, the other is absent",
    instead('commit', (commit, engine) =>
      engine.submit({ ...commit, expect: commit.expect.filter(({ version }) => version > 0) }),
    ),
  ],
]

describe.concurrent('the conformance kit rejects an engine that', () => {
  const check = async (name: string, mistake: Mistake): Promise<void> => {
    const found = conformance(mistaken(mistake)).find(one => one.name === name)
    if (!found) throw new Error(`there is no check ${name}`)
    await found.run()
  }

  test.each(mistakes)('%s', async (_, name, mistake) => {
    await check(name, {})
    await expect(check(name, mistake)).rejects.toThrow()
  })
})
