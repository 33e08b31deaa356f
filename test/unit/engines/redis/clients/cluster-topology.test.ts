import { beforeEach, expect, test } from 'vitest'
import { VirtualClock } from '../../../../../src/base/clock.js'
import { ClusterTopology } from '../../../../../src/engines/redis/clients/cluster-topology.js'
import type { Reply } from '../../../../../src/engines/redis/clients/connection.js'
import { slotOf } from '../../../../../src/engines/redis/slot.js'

const HALVES: Reply = [
  [0, 8191, ['10.0.0.1', 7000, 'id', []], ['10.0.0.9', 7009, 'replica', []]],
  [8192, 16_383, [null, 7001, 'id', []]],
]
/** A key in the first half of the slots, and one in the second half. */
const LOW = 'b'
const HIGH = 'a'

let clock: VirtualClock
let topology: ClusterTopology
let answers: (() => Promise<Reply>)[]
let asked: number
let changes: number

beforeEach(() => {
  clock = new VirtualClock()
  answers = []
  asked = 0
  changes = 0
  topology = new ClusterTopology(
    async () => ({ host: '10.0.0.5', slots: await (answers[asked++] ?? (async () => HALVES))() }),
    node => node.replace('10.0.0.1:', 'mapped:'),
    () => changes++,
    clock,
  )
})

test('keys map to nodes by CLUSTER SLOTS, with reachable addresses', async () => {
  expect([slotOf(LOW) < 8192, slotOf(HIGH) < 8192]).toEqual([true, false])
  expect(topology.masterOf(LOW)).toBeUndefined()
  expect(topology.masters).toEqual([])
  await topology.look()
  expect(topology.masterOf(LOW)).toBe('mapped:7000')
  // A node that does not know its own address has the address at which it was asked.
  expect(topology.masterOf(HIGH)).toBe('10.0.0.5:7001')
  expect(topology.masters).toEqual(['mapped:7000', '10.0.0.5:7001'])
  expect(changes).toBe(1)
})

test('a migrating slot stays with its source node', async () => {
  await topology.look()
  expect(topology.redirected(slotOf(LOW), '10.0.0.1:7002', false)).toBe('mapped:7002')
  expect(topology.masterOf(LOW)).toBe('mapped:7000')
  expect(clock.nextAt()).toBeUndefined()
})
