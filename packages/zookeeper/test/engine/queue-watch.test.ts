import type { WatchListener, ZooKeeper } from '../../src/index.js'
import { expect, test } from 'vitest'
import { VirtualClock } from 'signalbox/limits'
import type { LockNodes } from '../../src/engine/lock-nodes.js'
import { OwnNode, OwnRequest } from '../../src/engine/own-request.js'
import { QueueWatch } from '../../src/engine/queue-watch.js'
import { lockRequest } from '../../../../test/support/lock-request.js'
import { settled } from '../../../../test/support/passing.js'

const claim = { key: 'key', mode: 'exclusive' } as const
const node = (number: number): string => `x-lock-000000000${number}`

/** Starts a request whose node is the second in a queue that the test changes. */
function start() {
  const clock = new VirtualClock()
  const reports: string[] = []
  const queue = { children: [node(1), node(2)] }
  /** The watches of nodes, by their paths. */
  const watches = new Map<string, WatchListener>()
  const client = {
    getData: (path: string, { watch }: { watch: WatchListener }) => {
      if (!queue.children.includes(path.slice('/key/'.length)))
        return Promise.reject(new Error('no such node'))
      watches.set(path, watch)
      return Promise.resolve({ stat: { version: 0 } })
    },
    getChildren: () => Promise.resolve({ children: queue.children }),
  } as unknown as ZooKeeper
  const own = new OwnRequest(lockRequest('s.1', [claim]), 1, 10_000)
  const its = new OwnNode(claim, '/key')
  its.name = node(2)
  its.before = [node(1)]
  own.nodes = [its]
  own.client = client
  own.phase = 'waiting'
  const listener = {
    onFree: () => reports.push('free'),
    onDeleted: () => reports.push('deleted'),
    onContended: () => reports.push('contended'),
  }
  return { clock, own, queue, reports, watches, watch: new QueueWatch(clock, {} as LockNodes, listener) }
}

test('a request is free when the node ahead of it is deleted', async () => {
  const { own, queue, reports, watch, watches } = start()
  watch.watchBefore(own)
  await settled()
  queue.children = [node(2)]
  watches.get(`/key/${node(1)}`)!({ type: 'deleted', path: `/key/${node(1)}` })
  await settled()
  expect(reports).toEqual(['free'])
})

test('a request is free when the node ahead of it was deleted before it was watched', async () => {
  const { own, queue, reports, watch } = start()
  queue.children = [node(2)]
  watch.watchBefore(own)
  await settled()
  expect(reports).toEqual(['free'])
})

test('a grant is contended when another request came before the watch was set', async () => {
  const { clock, own, queue, reports, watch } = start()
  queue.children = [node(2), node(3)]
  watch.watchBehind(own)
  await settled()
  expect(clock.now()).toBe(0)
  expect(reports).toEqual(['contended'])
})
