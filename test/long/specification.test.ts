import { readdirSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { packageFile } from '../../bench/package.js'
import { readHistory } from '../../apps/chaos/history-file.js'
import type { Action } from '../simulation/action.js'
import { drawSchedule, KEYS } from '../simulation/schedule.js'
import { simulate } from '../simulation/simulate.js'
import { sources } from '../simulation/sources.js'
import {
  chaosEvents,
  historiesModule,
  simulatedEvents,
  type LockEvent,
} from '../support/specification/lock-histories.js'
import { guards, slowClock, wholes } from '../support/specification/configurations.js'
import { runTlc } from '../support/specification/tlc.js'

/** Number of simulated schedules to check. */
const SCHEDULES = 12

/** Returns the numbers, counted from 0, of the histories that TLC accepts to their end. */
async function accepted(histories: readonly (readonly LockEvent[])[]): Promise<number[]> {
  const { output } = await runTlc(
    'LockHistory',
    'LockHistory.cfg',
    {},
    { Histories: historiesModule(histories) },
  )
  const numbers = [...output.matchAll(/<<"accepted", (\d+)>>/g)].map(([, number]) => Number(number) - 1)
  return numbers.sort((one, other) => one - other)
}

/** Returns histories of schedules with exclusive locks for one key, the only ones that the TLA+ module describes. */
async function simulated(): Promise<LockEvent[][]> {
  const histories: LockEvent[][] = []
  for (let seed = 1; histories.length < SCHEDULES * KEYS.length; seed++) {
    const { climate, actions } = drawSchedule(seed)
    if (climate.kind === 'direct' || climate.detectDeadlocks) continue
    const chosen = new Set(actions.flatMap((action, index) => (isModelled(action) ? [index] : [])))
    const { history, violation } = await simulate(seed, sources, chosen)
    expect(violation).toBeUndefined()
    for (const key of KEYS) histories.push(simulatedEvents(history, key))
  }
  return histories.filter(events => events.some(({ op }) => op === 'holds'))
}

function isModelled(action: Action): boolean {
  switch (action.kind) {
    case 'lock': {
      const { claims, nested, ending } = action
      return claims.length === 1 && claims[0]!.mode === 'exclusive' && !nested && ending !== 'downgrade'
    }
    case 'crash':
      return !action.revoked
    case 'freeze':
    case 'cut':
    case 'close':
    case 'repeat':
      return true
    default:
      return false
  }
}

/** Returns a history with one event changed. */
function withChange(
  events: readonly LockEvent[],
  changes: (event: LockEvent) => boolean,
  fields: Readonly<Record<string, number | string>>,
): LockEvent[] {
  const index = events.findIndex(changes)
  expect(index).toBeGreaterThan(0)
  return events.map((event, at) => (at === index ? ({ ...event, ...fields } as LockEvent) : event))
}

const fixtures = packageFile('test/fixtures/chaos')

describe('TLC', () => {
  test.each(wholes)('finds nothing in the whole design: $file $bounds', async ({ module, file, bounds }) => {
    expect((await runTlc(module, file, bounds)).broken).toBe('none')
  })

  test.each([...guards, slowClock])('finds what breaks with $without', async configuration => {
    const { module, file, bounds, without, breaks } = configuration
    const [constant, value] = without!
    expect((await runTlc(module, file, { ...bounds, [constant]: value })).broken).toBe(breaks)
  })
})

describe('histories of real runs', () => {
  test('the module accepts those of the simulation, and none with a change', async () => {
    const histories = await simulated()
    const [longest] = histories.toSorted((one, other) => other.length - one.length)
    const isGrant = ({ op, reply }: LockEvent): boolean => op === 'checkIn' && reply === 'held'
    const changed = [
      [],
      withChange(longest!, ({ reply }) => reply === 'queued', { reply: 'held', number: 1_000_000 }),
      withChange(longest!, isGrant, { number: 0 }),
      withChange(longest!, ({ op, reply }) => op === 'release' && reply === true, { number: 1_000_000 }),
      withChange(longest!, ({ op }) => op === 'holds', { rest: 40_000_000 }),
      withChange(longest!, ({ op }) => op === 'write', { number: 1_000_000 }),
    ]
    expect(await accepted([...histories, ...changed])).toEqual([...histories.keys()])
  })

  test('the module accepts those of `signalbox chaos`, and none of two holders or falling numbers', async () => {
    const eventsIn = (file: string): LockEvent[][] => chaosEvents(readHistory(join(fixtures, file)))
    const good = readdirSync(fixtures)
      .filter(file => file.startsWith('good-'))
      .flatMap(eventsIn)
    const bad = ['bad-overlap.json', 'bad-token-falls.json', 'bad-token-twice.json', 'bad-fence-falls.json']
    expect(await accepted([...good, ...bad.flatMap(eventsIn)])).toEqual([...good.keys()])
  })
})
