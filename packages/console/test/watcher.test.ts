import { expect, test } from 'vitest'
import { VirtualClock } from 'signalbox/limits'
import type { Message } from '../src/messages.js'
import { Watcher, type Watched } from '../src/watcher.js'
import { UnavailableError, type LimiterReport, type LockReport, type Party } from 'signalbox'

function party(session: string, age: number, token?: bigint, key = 'k'): Party {
  const claim = { key, mode: 'exclusive' } as const
  return { session, host: 'vm', pid: 7, label: undefined, claim, token, age, expiresIn: 30_000 }
}

/** A clock whose wall clock can be set. */
class SetClock extends VirtualClock {
  ahead = 0

  wall(): number {
    return this.now() + this.ahead
  }
}

/** A watcher of an engine that the test controls. */
class World {
  readonly clock = new SetClock(1_000_000)
  reports: LockReport[] = []
  limiters: LimiterReport[] = []
  failure: Error | undefined
  /** Replies wait for this promise. */
  delay: Promise<void> | undefined
  /** Number of times that the watcher asked the engine for its locks. */
  looks = 0
  readonly watcher = new Watcher(this.#box(), { readOnly: false, hasDoctor: true }, this.clock)

  /** Adds a viewer, and returns the messages that it receives. */
  join(): { messages: Message[]; leave: () => void } {
    const messages: Message[] = []
    return { messages, leave: this.watcher.join(message => messages.push(message)) }
  }

  async advance(duration: number): Promise<void> {
    this.clock.advance(duration)
    // A look takes several promises.
    await new Promise(resolve => setImmediate(resolve))
  }

  hold(session: string, waiter?: string): void {
    const waiters = waiter === undefined ? [] : [party(waiter, 0)]
    this.reports = [{ key: 'k', holders: [party(session, 0, 1024n)], waiters }]
  }

  #box(): Watched {
    const world = this as World
    return {
      engine: 'memory:',
      async *inspect() {
        world.looks++
        const { reports } = world
        await world.delay
        if (world.failure) throw world.failure
        yield* reports
      },
      async *limiters() {
        yield* world.limiters
      },
    } as Watched
  }
}

test('the engine is asked once a second, however many look, and not at all when nobody does', async () => {
  const world = new World()
  await world.advance(5000)
  expect(world.looks).toBe(0)
  const viewers = Array.from({ length: 5 }, () => world.join())
  await world.advance(0)
  expect(world.looks).toBe(1)
  for (let second = 0; second < 3; second++) await world.advance(1000)
  expect(world.looks).toBe(4)
  for (const { messages, leave } of viewers) {
    expect(messages.map(({ type }) => type)).toEqual(['state', 'change', 'change', 'change'])
    leave()
  }
  await world.advance(5000)
  expect(world.looks).toBe(4)
})

test('only what has changed is sent, and the timeline with it', async () => {
  const world = new World()
  const { messages } = world.join()
  await world.advance(0)
  world.hold('a', 'b')
  await world.advance(1000)
  world.reports = [{ key: 'k', holders: [party('b', 1000, 2048n)], waiters: [] }]
  await world.advance(1000)
  world.reports = []
  await world.advance(1000)
  expect(messages).toMatchObject([
    { type: 'state', keys: [], events: [] },
    { type: 'change', keys: [{ key: 'k' }], gone: [], events: [{ number: 1, kind: 'granted' }] },
    {
      type: 'change',
      keys: [{ holders: [{ session: 'b' }] }],
      events: [{ kind: 'handed over', from: { session: 'a' }, who: { session: 'b' }, waited: 1000 }],
    },
    { type: 'change', keys: [], gone: ['k'], events: [{ number: 3, kind: 'released', held: 1000 }] },
  ])
  expect(world.join().messages).toMatchObject([{ type: 'state', events: [{ number: 1 }, {}, {}] }])
})

test('a failure is reported each second, without passwords, and the state stays', async () => {
  const world = new World()
  const { messages } = world.join()
  world.hold('a')
  await world.advance(0)
  world.failure = new UnavailableError('redis://me:hush@host is down', { cause: new Error('refused') })
  for (let second = 0; second < 15; second++) await world.advance(1000)
  expect(messages).toHaveLength(16)
  expect(messages[15]).toMatchObject({ type: 'fault', text: 'redis://***@host is down: refused' })
  const late = world.join()
  expect(late.messages).toMatchObject([{ type: 'state', keys: [{ key: 'k' }] }, { type: 'fault' }])
  world.failure = undefined
  await world.advance(1000)
  // By now another request is the holder.
  expect(late.messages[2]).toMatchObject({ type: 'change' })
})

test('after a time without viewers the timeline begins again', async () => {
  const world = new World()
  const first = world.join()
  await world.advance(0)
  world.hold('a')
  await world.advance(1000)
  first.leave()
  world.reports = []
  await world.advance(60_000)
  const { messages } = world.join()
  expect(messages).toEqual([])
  await world.advance(0)
  expect(messages).toMatchObject([{ type: 'state', since: 1_061_000, keys: [], events: [] }])
})

test('the timeline is bounded', async () => {
  const world = new World()
  world.join()
  await world.advance(0)
  for (let turn = 0; turn < 30; turn++) {
    world.reports = Array.from({ length: 100 }, (_, index) => ({
      key: `${turn} ${index}`,
      holders: [party('a', 0, BigInt(turn))],
      waiters: [],
    }))
    await world.advance(1000)
  }
  const [state] = world.join().messages
  expect(state).toMatchObject({ type: 'state' })
  expect(state?.type === 'state' && state.events).toHaveLength(2000)
})

test('limiters are sent when one has changed', async () => {
  const world = new World()
  const limit = {
    limit: 5,
    per: 1000,
    window: 'sliding',
    inForce: true,
    timeZone: '',
    used: 1,
    remaining: 4,
  } as const
  const limiter = (used: number, resetIn: number): LimiterReport => ({
    name: 'api',
    key: undefined,
    pausedFor: 0,
    limits: [{ ...limit, used, remaining: 5 - used, resetIn }],
    waiting: [],
  })
  world.limiters = [limiter(1, 5000)]
  const { messages } = world.join()
  await world.advance(0)
  world.limiters = [limiter(1, 4000)]
  await world.advance(1000)
  world.limiters = [limiter(2, 3000)]
  await world.advance(1000)
  expect(messages[0]).toMatchObject({
    limiters: [{ name: 'api', limits: [{ used: 1, readyAt: 1_005_000 }] }],
  })
  expect(messages[1]).not.toHaveProperty('limiters')
  expect(messages[2]).toMatchObject({ limiters: [{ limits: [{ used: 2 }] }] })
})

test('while the engine is slow to reply, viewers are notified, and new ones receive the state first', async () => {
  const world = new World()
  world.hold('a')
  const first = world.join()
  await world.advance(0)
  let reply = (): void => undefined
  world.delay = new Promise(resolve => (reply = resolve))
  await world.advance(1000)
  await world.advance(11_000)
  expect(first.messages).toMatchObject([
    { type: 'state' },
    { type: 'fault', text: 'the engine has not replied for 5.0s' },
    { type: 'fault', text: 'the engine has not replied for 10.0s' },
  ])
  const { messages } = world.join()
  reply()
  await world.advance(0)
  expect(messages).toMatchObject([
    { type: 'state', keys: [{ key: 'k' }] },
    { type: 'fault' },
    { type: 'change' },
  ])
  world.delay = undefined
  for (let second = 0; second < 10; second++) await world.advance(1000)
  expect(messages.slice(3).every(({ type }) => type === 'change')).toBe(true)
})

test('a slow reply does not make a waiter leave', async () => {
  const world = new World()
  const { messages } = world.join()
  world.hold('a')
  await world.advance(0)
  world.reports = [{ ...world.reports[0]!, waiters: [party('b', 0)] }]
  await world.advance(1000)
  let reply = (): void => undefined
  world.delay = new Promise(resolve => (reply = resolve))
  // The engine saw the waiter at the start of the look. The reply arrived four seconds later.
  world.reports = [{ ...world.reports[0]!, waiters: [party('b', 1000)] }]
  await world.advance(1000)
  await world.advance(4000)
  reply()
  await world.advance(0)
  world.delay = undefined
  world.reports = [{ ...world.reports[0]!, waiters: [party('b', 6000)] }]
  await world.advance(1000)
  expect(messages.map(({ type }) => type)).toEqual(['state', 'change', 'change', 'change'])
  expect(messages.flatMap(message => ('events' in message ? message.events : []))).toEqual([])
})

test('if the wall clock jumps, the timeline begins again', async () => {
  const world = new World()
  const { messages } = world.join()
  world.hold('a', 'b')
  await world.advance(0)
  world.clock.ahead = 3_600_000
  world.reports = [{ key: 'k', holders: [party('a', 1000, 1024n)], waiters: [party('b', 1000)] }]
  await world.advance(1000)
  world.reports = [{ key: 'k', holders: [party('a', 2000, 1024n)], waiters: [party('b', 2000)] }]
  await world.advance(1000)
  expect(messages).toMatchObject([
    { type: 'state', since: 1_000_000 },
    { type: 'state', since: 4_601_000, events: [], keys: [{ waiters: [{ since: 4_600_000 }] }] },
    { type: 'change', events: [] },
  ])
})

test('only the grant that an operator ended is marked, not one of another key with the same token', async () => {
  const world = new World()
  const { messages } = world.join()
  const held = (key: string, session: string): LockReport => ({
    key,
    holders: [party(session, 0, 1024n, key)],
    waiters: [],
  })
  world.reports = [held('one', 'a'), held('together', 'a'), held('other', 'b'), held('late', 'c')]
  await world.advance(0)
  world.watcher.releasedByHand('one', '1024')
  // The operator clicks a second time.
  world.watcher.releasedByHand('one', '1024')()
  // The grant turned out to have ended by itself.
  world.watcher.releasedByHand('late', '1024')()
  world.reports = []
  await world.advance(1000)
  const [, change] = messages
  expect(change?.type === 'change' && change.events.map(({ key, kind }) => `${key} ${kind}`)).toEqual([
    'one released by hand',
    'together released by hand',
    'other released',
    'late released',
  ])
})
