import { expect, test, vi } from 'vitest'
import { Box } from '../../src/box.js'
import { VirtualClock } from '../../src/base/clock.js'
import { openMemory } from '../../src/engines/memory/memory-engine.js'
import { DamagedValueError, UnavailableError } from '../../src/base/errors.js'
import { FaultInjectingEngine } from '../../packages/conformance/src/fault-injecting-engine.js'

/** Resolves when all promises that need no time have settled. */
const settled = (): Promise<void> => new Promise(setImmediate)

async function goOn(clock: VirtualClock, steps: number, length: number): Promise<void> {
  for (let step = 0; step < steps; step++) {
    for (let turn = 0; turn < 5; turn++) await settled()
    clock.advance(length)
  }
  await settled()
}

test('a task that fails at once is called after growing pauses, which start again after a long term', async () => {
  const clock = new VirtualClock(0)
  const box = await Box.join(openMemory('memory:'), clock)
  const begun: number[] = []
  const stop = new AbortController()
  const leading = box.election('e').lead(
    async () => {
      begun.push(clock.now())
      if (begun.length === 7) await new Promise<void>(resolve => clock.after(15_000, resolve))
      throw new Error('of the task')
    },
    { again: () => undefined, signal: stop.signal },
  )
  await goOn(clock, 700, 100)
  expect(begun.map(time => time / 1000)).toEqual([0, 1, 3, 7, 15, 25, 35, 51, 53, 57, 65])
  stop.abort()
  await expect(leading).rejects.toMatchObject({ code: 'ABORTED' })
  await box.close()
})

test('while the engine is unreachable, a caller retries each second', async () => {
  const clock = new VirtualClock(0)
  const engine = new FaultInjectingEngine(openMemory('memory:'))
  const box = await Box.join(engine, clock)
  engine.fail(['enqueue'], new UnavailableError('an outage'))
  let errors = 0
  const leading = box.election('e').lead(() => 'led', { again: () => void errors++ })
  await goOn(clock, 205, 100)
  expect(errors).toBe(21)
  engine.restore()
  await goOn(clock, 10, 100)
  expect(await leading).toBe('led')
  await box.close()
})

test.each(['at once', 'with drain'])(
  'a pause before a further term ends when the box closes %s',
  async how => {
    const clock = new VirtualClock(0)
    const box = await Box.join(openMemory('memory:'), clock)
    const failing = (): never => {
      throw new Error('of the task')
    }
    const leading = box.election('e').lead(failing, { again: () => undefined })
    await goOn(clock, 80, 100)
    void box.close({ drain: how === 'with drain' })
    await expect(leading).rejects.toMatchObject({ code: 'CLOSED', taskBegan: false })
    expect(clock.nextAt()).toBeUndefined()
  },
)

test('a leader overwrites a damaged term whose version can not be read', async () => {
  const clock = new VirtualClock(0)
  const engine = new FaultInjectingEngine(openMemory('memory:'))
  const box = await Box.join(engine, clock)
  engine.fail(['read'], new DamagedValueError("can't read the value"))
  const grant = await box.election('e').campaign()
  engine.restore()
  expect(await box.election('e').leader()).toMatchObject({ session: box.session, token: grant.token })
  await box.close()
})

test('a report that fails does not end the lead, and the error itself, thrown on, does', async () => {
  const clock = new VirtualClock(0)
  const box = await Box.join(openMemory('memory:'), clock)
  const warn = vi.spyOn(process, 'emitWarning').mockImplementation(() => undefined)
  const errors = [new Error('of the task'), new Error('of the next term')]
  try {
    let terms = 0
    const failing = (): never => {
      throw errors[terms++]!
    }
    const again = async (error: unknown): Promise<void> => {
      throw error === errors[0] ? new Error('the log is away') : error
    }
    const leading = box.election('clerk').lead(failing, { again })
    const ended = expect(leading).rejects.toBe(errors[1])
    await goOn(clock, 11, 100)
    await ended
    expect(warn.mock.calls).toEqual([
      ["election 'clerk' stands again although `again` failed: the log is away", 'SignalboxWarning'],
    ])
  } finally {
    warn.mockRestore()
  }
  await box.close()
})

test('with `again: true` each error is a warning of the process', async () => {
  const clock = new VirtualClock(0)
  const box = await Box.join(openMemory('memory:'), clock)
  const warn = vi.spyOn(process, 'emitWarning').mockImplementation(() => undefined)
  try {
    let terms = 0
    const leading = box.election('clerk').lead(
      () => {
        if (++terms === 1) throw new Error('of the task')
        // A value that does not convert to a string.
        if (terms === 2) throw Object.create(null)
        return 'led'
      },
      { again: true },
    )
    await goOn(clock, 30, 100)
    expect(await leading).toBe('led')
    expect(warn.mock.calls).toEqual([
      ["election 'clerk' stands again after: of the task", 'SignalboxWarning'],
      ["election 'clerk' stands again after: an object", 'SignalboxWarning'],
    ])
  } finally {
    warn.mockRestore()
  }
  await box.close()
})

test.each([undefined, 5, 'text', [], { token: 5 }, { session: 's', host: 'h', pid: 1, token: 'five' }])(
  'a record that something else has written (%j) names no leader, and the next one overwrites it',
  async record => {
    const box = await Box.join(openMemory('memory:'), new VirtualClock(0))
    const election = box.election('e')
    const records = box.store('signalbox-elections')
    await records.put('e', record ?? null)
    expect(await election.leader()).toBeUndefined()
    const observed = election.observe()
    expect(await observed.next()).toEqual({ done: false, value: undefined })
    await observed.return()
    await election.lead(async () => {
      expect(await election.leader()).toMatchObject({ session: box.session })
      await records.put('e', record ?? null)
      expect(await election.leader()).toBeUndefined()
    })
    await box.close()
  },
)
