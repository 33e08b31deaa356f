import { hostname } from 'node:os'
import { describe } from './checks.js'
import { assert, rejection } from './assert.js'
import { BusyError, IndeterminateError, type LockEvent, LostError, UnavailableError } from 'signalbox'
import { testOn } from './boxes.js'
import type { EngineFixture } from './fixture.js'
import { CLAIM_WINDOW } from 'signalbox/engine'
import { rising } from './section.js'
import { assertServed, LAPSING, pause, queued, soFar, NOTIFIED_BY_RENEWAL, until } from './time.js'

/**
 * The lease of a leader that is to lose its term, in milliseconds. A campaign takes three steps of the engine, and one
 * of several processes on a loaded machine stands still for up to a second.
 */
const TERM = 3000

/** Operations that fail twice while a leader stores its term. */
const OUTAGES: readonly { outage: string; when: string; isApplied: boolean }[] = [
  { outage: 'read', when: 'it cannot read the one before', isApplied: false },
  { outage: 'commit', when: 'the engine refuses its write', isApplied: false },
  { outage: 'commit', when: 'no reply to its write comes', isApplied: true },
]

/** Whether a store key holds the term of an election. */
function isTerm(key: string): boolean {
  return key.startsWith('signalbox-elections/')
}

/** Elections: one leader among many candidates. */
export function election(fixture: EngineFixture): void {
  describe('an election', () => {
    const test = testOn(fixture)

    test('one candidate leads, and every box can read which', async boxes => {
      const one = await boxes.open({ label: 'the box' })
      const other = await boxes.open()
      assert.equal(await one.election('e').leader(), undefined)
      const term = await one.election('e').campaign({ label: 'scheduler' })
      const leader = {
        session: one.session,
        host: hostname(),
        pid: process.pid,
        label: 'scheduler',
        token: term.token,
      }
      for (const box of [one, other]) assert.deepEqual(await box.election('e').leader(), leader)
      assert.equal(await other.election('another').leader(), undefined)
      await assert.rejects(other.election('e').campaign({ wait: 0 }), BusyError)
      await term.release()
      for (const box of [one, other]) assert.equal(await box.election('e').leader(), undefined)
    })

    test('a leader without a label has the label of its box', async boxes => {
      const one = await boxes.open({ label: 'worker 7' })
      await one.election('e').campaign()
      assert.equal((await one.election('e').leader())!.label, 'worker 7')
    })

    test('when the leader resigns, the next candidate leads with a greater token', async boxes => {
      const all = await boxes.several(3)
      const tokens: bigint[] = []
      const leaders: string[] = []
      const first = await all[0]!.election('e').campaign()
      const terms = []
      for (const [index, box] of all.slice(1).entries()) {
        terms.push(box.election('e').campaign())
        await queued(box, 'election:e', index + 1)
      }
      tokens.push(first.token)
      const begun = performance.now()
      await first.release()
      const led = terms.map(async coming => {
        const term = await coming
        tokens.push(term.token)
        leaders.push((await all[0]!.election('e').leader())!.session)
        await term.release()
      })
      await Promise.all(led)
      const candidates = [all[1]!.session, all[2]!.session]
      // A candidate that stands still for the claim window loses its turn.
      const isInOrder = performance.now() - begun < CLAIM_WINDOW
      assertServed(leaders, candidates, isInOrder)
      assert.equal(rising(tokens), true)
    })

    test('lead runs its task as the leader, returns the result, and resigns', async boxes => {
      const [one, other] = await boxes.pair()
      const given = await one.election('e').lead(async grant => {
        grant.assertHeld()
        assert.equal((await other.election('e').leader())!.token, grant.token)
        return 'given'
      })
      assert.equal(given, 'given')
      assert.equal(await other.election('e').leader(), undefined)
      const failing = one.election('e').lead(() => Promise.reject(new Error('of the task')))
      await assert.rejects(failing, /of the task/)
      assert.equal(await other.election('e').leader(), undefined)
      assert.equal(await other.election('e').lead(() => 'next'), 'next')
    })

    test('with `again` a leader that lost its lead leads again, and is notified', async boxes => {
      const [one, other] = await boxes.pair()
      const terms: bigint[] = []
      const errors: unknown[] = []
      const given = await one.election('e').lead(
        async grant => {
          terms.push(grant.token)
          if (terms.length > 1) return 'led to the end'
          const gone = new Promise(resolve => grant.signal.addEventListener('abort', resolve))
          assert.equal(await other.forceRelease('election:e', grant.token), true)
          await gone
          throw new Error('of a task without its lead')
        },
        { lease: NOTIFIED_BY_RENEWAL, again: error => errors.push(error) },
      )
      assert.equal(given, 'led to the end')
      assert.hasLength(terms, 2)
      assert.equal(rising(terms), true)
      assert.deepEqual(
        errors.map(error => (error as Error).message),
        ['of a task without its lead'],
      )
    })

    test('with `again` a leader is a candidate again after an error of its task, also behind another candidate', async boxes => {
      const [one, other] = await boxes.pair()
      const errors: unknown[] = []
      const led: string[] = []
      let next: Promise<unknown> | undefined
      const task = async (): Promise<string> => {
        led.push('one')
        if (led.length > 1) return 'led to the end'
        next = other.election('e').lead(() => void led.push('other'))
        await queued(other, 'election:e', 1)
        throw new Error('of the task')
      }
      const again = (error: unknown): void => void errors.push(error)
      assert.equal(await one.election('e').lead(task, { again }), 'led to the end')
      await next
      assert.deepEqual(led, ['one', 'other', 'one'])
      assert.deepEqual(
        errors.map(error => (error as Error).message),
        ['of the task'],
      )
    })

    test('with `again` a lead ends when the function returns false, and on errors that a retry does not fix', async boxes => {
      const box = await boxes.open()
      const failing = (): Promise<never> => Promise.reject(new Error('of the task'))
      for (const again of [() => false, async () => false])
        await assert.rejects(box.election('e').lead(failing, { again }), /of the task/)
      const errors: unknown[] = []
      const again = (error: unknown): void => void errors.push(error)
      const refused = box.election('e').lead(failing, { again, lease: -1 })
      assert.has(await rejection(refused), { code: 'INVALID_ARGUMENT', taskBegan: false })
      const term = await box.election('held').campaign()
      const waiting = box.election('held').lead(failing, { again, wait: 20 })
      assert.has(await rejection(waiting), { code: 'TIMED_OUT', taskBegan: false })
      await term.release()
      const stop = new AbortController()
      const stopped = box.election('e').lead(
        () => {
          stop.abort()
          return failing()
        },
        { again, signal: stop.signal },
      )
      await assert.rejects(stopped, /of the task/)
      const closing = box.election('e').lead(
        async () => {
          await box.close()
          throw new UnavailableError('of a task without its box')
        },
        { again },
      )
      await assert.rejects(closing, /without its box/)
      assert.hasLength(errors, 0)
    })

    test('with `again` a caller that meets an outage is a candidate again', async boxes => {
      const [box, engine] = await boxes.withFaults()
      const errors: unknown[] = []
      engine.fail(['enqueue'], new UnavailableError('an outage'))
      const given = await box.election('e').lead(() => 'led', {
        again: error => {
          errors.push(error)
          engine.restore()
        },
      })
      assert.equal(given, 'led')
      assert.has(errors, [{ code: 'UNAVAILABLE', taskBegan: false }])
    })

    for (const { outage, when, isApplied } of OUTAGES)
      test(`a leader stores its term although ${when}`, async boxes => {
        const one = await boxes.open()
        const [other, engine] = await boxes.withFaults()
        const attempts: string[] = []
        engine.intercept = async (operation, execute) => {
          const { type } = operation
          const isOfTerm =
            (type === 'read' && operation.keys.some(isTerm)) ||
            (type === 'commit' && operation.writes.some(({ key }) => isTerm(key)))
          if (!isOfTerm) return execute()
          attempts.push(type)
          // No write may replace the term of a later leader, however late it arrives.
          if (type === 'commit') assert.hasLength(operation.expect, 1)
          if (type !== outage || attempts.filter(each => each === type).length > 2) return execute()
          if (isApplied) await execute()
          throw isApplied ? new IndeterminateError('no reply') : new UnavailableError('an outage')
        }
        const led = await other.election('e').lead(async grant => {
          assert.equal((await one.election('e').leader())?.token, grant.token)
          return 'led'
        })
        assert.equal(led, 'led')
        assert.above(attempts.length, 2)
        assert.equal(await one.election('e').leader(), undefined)
      })

    test('a leader that loses its lead while its term cannot be stored does not lead', async boxes => {
      const [box, engine] = await boxes.withFaults()
      engine.intercept = ({ type }, execute) =>
        type === 'read' ? Promise.reject(new UnavailableError('an outage')) : execute()
      const leading = box.election('e').lead(() => 'led', { lease: LAPSING, renew: false })
      assert.has(await rejection(leading), { code: 'LOST', taskBegan: false })
    })

    test('a term is published on the lock channels, and not on the store channels', async boxes => {
      const box = await boxes.open()
      const granted = boxes.events<LockEvent>('lock:granted', box)
      const written = boxes.events('store:write', box)
      await box.election('e').lead(() => undefined)
      await box.store('s').put('key', 'a write of the caller')
      assert.deepEqual(
        granted.map(({ keys }) => keys),
        [['election:e']],
      )
      assert.has(written, [{ store: 's' }])
    })

    test('a task that fails while its box closes rejects with its own error', async boxes => {
      const one = await boxes.open()
      const leading = one.election('e').lead(async () => {
        await one.close()
        throw new Error('of the task')
      })
      await assert.rejects(leading, /of the task/)
    })

    test('each candidate leads once, one at a time', async boxes => {
      const all = await boxes.several(4)
      let leading = 0
      const terms: bigint[] = []
      await Promise.all(
        [...all, ...all].map(box =>
          box.election('e').lead(async grant => {
            assert.equal(++leading, 1)
            terms.push(grant.token)
            await pause(2)
            grant.assertHeld()
            leading--
          }),
        ),
      )
      assert.hasLength(terms, 8)
      assert.equal(rising(terms), true)
    })

    test('after a leader loses its term, no leader is shown and the old leader is notified', async boxes => {
      const [one, other] = await boxes.pair()
      const lapsing = await one.election('e').campaign({ lease: TERM, renew: false })
      await until('its holder is notified', () => lapsing.signal.aborted)
      // For the engine, the term ends later, by the time that the request was under way.
      const none = async (): Promise<boolean> => (await other.election('e').leader()) === undefined
      await until('no leader is shown', none, 4000)
      assert.throws(() => lapsing.assertHeld(), LostError)
      const next = await other.election('e').campaign()
      assert.above(next.token, lapsing.token)
      await assert.rejects(lapsing.release(), LostError)
      assert.equal((await one.election('e').leader())!.session, other.session)
      next.assertHeld()
    })

    test('a leader is no longer shown after its box closed or stopped responding', async boxes => {
      const other = await boxes.open()
      const closing = await boxes.open()
      await closing.election('e').campaign()
      await closing.close()
      assert.equal(await other.election('e').leader(), undefined)
      const [silent, engine] = await boxes.withFaults()
      await silent.election('e').campaign({ lease: TERM })
      await engine.freeze()
      const next = await other.election('e').campaign()
      assert.equal((await other.election('e').leader())!.token, next.token)
    })

    test('an observer sees each leader come and go', async boxes => {
      const [one, other] = await boxes.pair()
      const controller = new AbortController()
      const seen: (string | undefined)[] = []
      const observing = (async () => {
        for await (const leader of other.election('e').observe(controller.signal)) seen.push(leader?.label)
      })()
      await until('no leader is seen', () => seen.length === 1)
      for (const label of ['first', 'second']) {
        const term = await one.election('e').campaign({ label })
        await until(`${label} is seen`, () => seen.at(-1) === label)
        await term.release()
        await until('no leader is seen again', () => seen.at(-1) === undefined)
      }
      assert.deepEqual(seen, [undefined, 'first', undefined, 'second', undefined])
      controller.abort()
      await observing
    })

    test('`await using` ends a term, and a second release does nothing', async boxes => {
      const [one, other] = await boxes.pair()
      {
        await using term = await one.election('e').campaign()
        assert.hasLength(term.keys, 1)
        assert.above(term.expiresIn(), 0)
        await term.release()
      }
      assert.equal(await other.election('e').leader(), undefined)
      const term = await other.election('e').campaign()
      assert.equal(
        await soFar(
          one
            .election('e')
            .campaign()
            .catch(() => undefined),
        ),
        'pending',
      )
      term.assertHeld()
    })
  })
}
