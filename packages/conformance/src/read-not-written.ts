import type { Box, ReadValue, Store } from 'signalbox'
import { assert } from './assert.js'
import { testOn } from './boxes.js'
import { describe } from './checks.js'
import type { EngineFixture } from './fixture.js'
import { nothingHeld, pause } from './time.js'

const PAIRS = 12
const ON_DUTY = 'on duty'

/** The first values of a pair of keys, and whether a transaction deletes its own key. */
const changes = {
  'written, the other is present': { before: [ON_DUTY, ON_DUTY], remove: false },
  'written, the other is absent': { before: [undefined, undefined], remove: false },
  'deleted, the other is present': { before: [ON_DUTY, ON_DUTY], remove: true },
  'deleted in one, written in the other, which is absent': { before: [ON_DUTY, undefined], remove: true },
} as const

/**
 * P13: a value that a transaction has read, and does not write, is unchanged at its commit. Of two transactions that
 * each write the value that the other has read, one is called again after the other's commit.
 */
export function readNotWritten(fixture: EngineFixture): void {
  describe('P13 commits are atomic and durable', () => {
    const test = testOn(fixture)

    for (const [manner, options] of [
      ['each on its own', {}],
      ['in groups', { group: { maxSize: 8, maxTime: 20 } }],
    ] as const) {
      for (const [change, { before, remove }] of Object.entries(changes)) {
        test(`one of two transactions that read each other's key sees the other's commit, ${manner}: its own key is ${change}`, async boxes => {
          const pair = await boxes.pair()
          const [one, other] = pair.map((box: Box) => box.store('s', options)) as [Store, Store]
          for (let index = 0; index < PAIRS; index++) {
            const keys = [`one ${index}`, `other ${index}`] as const
            for (const [place, value] of before.entries())
              if (value !== undefined) await one.put(keys[place]!, value)
            const [named, called] = [meeting(), meeting()]
            const left = await Promise.all([
              leave(one, keys[0], keys[1], before[1], remove, named, called),
              leave(other, keys[1], keys[0], before[0], remove, named, called),
            ])
            assert.equal(left.filter(Boolean).length, 1, `both of pair ${index} have left`)
          }
          await nothingHeld(pair[0])
        })
      }
    }
  })
}

/** Changes its own key if the other one is as before. Returns whether it did. */
async function leave(
  store: Store,
  own: string,
  other: string,
  before: string | undefined,
  remove: boolean,
  named: () => Promise<void>,
  called: () => Promise<void>,
): Promise<boolean> {
  let seen: string | undefined
  const name = async (read: ReadValue): Promise<string[]> => {
    seen = await read<string>(other)
    await named()
    return [own]
  }
  const outcome = await store.transaction(name, async transaction => {
    // Both commit at the same time, unless each needs the locks of the other, as with records.
    await Promise.race([called(), pause(20)])
    if (seen !== before) return false
    if (remove && transaction.get(own) !== undefined) transaction.delete(own)
    else transaction.put(own, 'off duty')
    return true
  })
  return outcome.applied && outcome.result
}

/** Returns a function whose promise resolves when it was called twice. */
function meeting(): () => Promise<void> {
  let arrived = 0
  let open = (): void => undefined
  const both = new Promise<void>(resolve => (open = resolve))
  return () => {
    if (++arrived === 2) open()
    return both
  }
}
