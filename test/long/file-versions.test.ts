import { expect, test } from 'vitest'
import { sharedClock } from '../../src/base/clock.js'
import { queued } from '../../packages/conformance/src/time.js'
import { nodeOf } from '../support/file/node-of.js'
import { place } from '../support/file/places.js'
import { runProgram } from '../support/run-program.js'

const LEASE = 1500
const LONG = { lease: 60_000 }

test.each([20, 22, 24])(
  'a process on Node %d shares a folder with a process and a thread on this one',
  async major => {
    const here = place()
    const node = await nodeOf(major)
    const before = sharedClock.now()
    const { stdout } = await runProgram(node, ['-p', 'Number(process.hrtime.bigint()) / 1e6'], {
      cwd: here.folder,
      timeLimit: 60_000,
    })
    expect(Number(stdout)).toBeGreaterThan(before)
    expect(Number(stdout)).toBeLessThan(sharedClock.now())

    const watcher = await here.box()
    const [thread, ours, theirs] = [
      await here.thread(),
      await here.process(),
      await here.process(here.url, { node }),
    ]
    for (const [holder, others] of [
      [theirs, [thread, ours]],
      [ours, [theirs, thread]],
      [thread, [ours, theirs]],
    ] as const) {
      await holder.mutex('it', ['a'], LONG)
      const waiting = others.map(async other => {
        await other.mutex('it', ['a'], LONG)
        await other.release('it')
      })
      await queued(watcher, 'a', 2)
      await holder.call('assertHeld', 'it')
      await holder.release('it')
      await Promise.all(waiting)
    }

    // Others can take the key only when the lease has also ended for its holder.
    for (const [stopped, other] of [
      [theirs, ours],
      [ours, theirs],
    ] as const) {
      const asked = sharedClock.now()
      await stopped.mutex('it', ['a'], { lease: LEASE, renew: false })
      stopped.freeze()
      const { at } = await other.mutex('it', ['a'], LONG)
      expect(at - asked).toBeGreaterThanOrEqual(LEASE)
      stopped.thaw()
      await expect(stopped.call('assertHeld', 'it')).rejects.toMatchObject({ code: 'LOST' })
      await other.release('it')
    }
  },
)
