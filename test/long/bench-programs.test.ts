import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { now } from '../../bench/clock.js'
import { curator } from '../../bench/lockers/curator.js'
import { kazoo } from '../../bench/lockers/kazoo.js'
import { rFairLock, rLock } from '../../bench/lockers/redisson.js'
import type { Performance, Performer } from '../../bench/processes/performer.js'

let folder: string

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'signalbox-programs-'))
})

afterEach(() => rm(folder, { recursive: true }))

/** Returns the first measurement with enough operations. A busy machine may need several attempts. */
async function performed(
  performer: Performer,
  isEnough: (performance: Performance) => boolean,
): Promise<Performance> {
  for (;;) {
    const startAt = now() + 50
    const performance = await performer.perform({ startAt, endAt: startAt + 300 })
    if (isEnough(performance)) return performance
  }
}

describe.each([rLock, rFairLock, curator, kazoo].map(library => [library.name, library] as const))(
  'the program of the bench for %s',
  (_, library) => {
    test('locks, reports the waiting time, and finds overlapping holders', async () => {
      const end = await library.support(folder)
      const tasks = { folder, process: 0, processes: 1, keys: ['key'], tasks: 3, isGuarded: true }
      const performer = await library.start(tasks)
      try {
        const sound = await performed(performer, ({ operations }) => operations > 0)
        expect(sound.broken).toBeUndefined()
        expect(sound.waits.length).toBeGreaterThanOrEqual(sound.operations)
        expect(sound.requested).toHaveLength(sound.waits.length)

        const guarded = await readFile(join(folder, 'guarded'))
        guarded.writeUInt8(9)
        await writeFile(join(folder, 'guarded'), guarded)
        const disturbed = await performed(performer, ({ waits }) => waits.length > 0)
        expect(disturbed.broken).toBe('process 9 was inside when process 1 came in')
      } finally {
        await performer.stop()
        await end()
      }
    })
  },
)
