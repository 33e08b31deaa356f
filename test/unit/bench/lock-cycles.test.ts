import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { now } from '../../../bench/clock.js'
import { GuardedField } from '../../../bench/file/guarded-field.js'
import { GuardedFile } from '../../../bench/file/guarded-file.js'
import { lockCycles, type Cycler, type Section } from '../../../bench/file/lock-cycles.js'
import { LocalQueues } from '../../../bench/lockers/local-queues.js'
import type { Locker } from '../../../bench/lockers/locker.js'
import type { Performance, Window } from '../../../bench/processes/performer.js'

let folder: string

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'signalbox-cycles-'))
})

afterEach(() => rm(folder, { recursive: true }))

const close = (): Promise<void> => Promise.resolve()

/** Returns a correct lock whose grants have these tokens. */
function sound(nextToken: () => bigint): Locker {
  const queues = new LocalQueues()
  return {
    async lock(key) {
      const leave = await queues.enter(key)
      const unlock = (): Promise<void> => {
        leave()
        return Promise.resolve()
      }
      return { token: nextToken(), unlock }
    },
    close,
  }
}

describe.each<[string, () => Section]>([
  ['a field', () => new GuardedField()],
  ['a file', () => new GuardedFile(folder, 0)],
])('%s that only the holder of a lock may touch', (_, open) => {
  async function perform(locker: Locker): Promise<Performance> {
    const section = open()
    let locks = 0
    const counted: Locker = {
      ...locker,
      lock(key) {
        locks++
        return locker.lock(key)
      },
    }
    // The window ends after 30 locks, so that a stalled machine does not end it earlier.
    const window: Window = {
      startAt: now(),
      get endAt() {
        return locks < 30 ? Infinity : -Infinity
      },
    }
    try {
      return await lockCycles(window, Array<Cycler>(3).fill({ locker: counted, key: 'key' }), section)
    } finally {
      section.close?.()
    }
  }

  test('finds nothing wrong with a lock that excludes', async () => {
    let token = 0n
    const { broken, operations, waits } = await perform(sound(() => ++token))
    expect(broken).toBeUndefined()
    expect(operations).toBeGreaterThan(1)
    expect(waits.length).toBeGreaterThanOrEqual(operations)
  })

  test('finds out when two tasks of a process are inside', async () => {
    const nothing: Locker = { lock: () => Promise.resolve({ unlock: close }), close }
    expect((await perform(nothing)).broken).toMatch(/inside/)
  })

  test('finds out when tokens do not rise', async () => {
    expect((await perform(sound(() => 7n))).broken).toBe('token 7 was given after token 7')
  })
})
