import { describe, expect, test } from 'vitest'
import type { Box } from '../../src/box.js'
import { open } from '../../src/open.js'
import { pause, queued, soFar } from '../../packages/conformance/src/time.js'
import { snapshotOf } from '../support/servers/zookeeper-snapshot.js'
import { startZooKeeper } from '../support/servers/zookeeper.js'

const LAST = 2 ** 31 - 1

describe.concurrent('a queue beyond the last number keeps order and exclusion', () => {
  test('without a bridge', () => useKey([]))
  test('if some boxes have one', () => useKey([0, 2, 3]))
})

/**
 * Locks a key with six boxes in turn, beyond the last number of its queue.
 * @param bridged indexes of the boxes with a bridge
 */
async function useKey(bridged: readonly number[]): Promise<void> {
  await using server = await startZooKeeper({
    files: snapshotOf([
      ['/place', 1],
      ['/place/locks', 1],
      ['/place/locks/key', LAST - 2],
    ]),
  })
  const url = `zookeeper://${server.address}/place?sessionTimeout=20s`
  const boxes = await Promise.all(
    Array.from({ length: 6 }, (_, index) => open(bridged.includes(index) ? `${url}&bridge=true` : url)),
  )
  const [first, ...others] = boxes as [Box, ...Box[]]
  let inside = 0
  const order: number[] = []
  const tokens: bigint[] = []
  for (let round = 0; round < 4; round++) {
    const held = await first.mutex('key').acquire()
    tokens.push(held.token)
    inside++
    const tasks = []
    for (const [index, box] of others.entries()) {
      tasks.push(
        box.mutex('key').run(async grant => {
          expect(++inside).toBe(1)
          order.push(index)
          tokens.push(grant.token)
          await pause(1)
          inside--
        }),
      )
      await queued(first, 'key', index + 1)
    }
    inside--
    await held.release()
    await Promise.all(tasks)
  }
  expect(order).toEqual(Array.from({ length: 4 }, () => [0, 1, 2, 3, 4]).flat())
  expect(tokens).toEqual([...tokens].sort((a, b) => (a < b ? -1 : 1)))
  expect(new Set(tokens).size).toBe(tokens.length)

  // A writer that was downgraded to a reader does not let in a later writer.
  const [writer, reader, next] = [first, others[0]!, others[1]!].map(box => box.readWriteLock('key'))
  const writing = await writer!.write.acquire()
  const waiting = next!.write.acquire()
  await queued(first, 'key', 1)
  await writing.downgrade()
  const reading = reader!.read.acquire()
  await queued(first, 'key', 2)
  expect(await soFar(waiting)).toBe('pending')
  await writing.release()
  const granted = await waiting
  await granted.release()
  await (await reading).release()
  for (const box of boxes) await box.close()
}
