import { beforeEach, expect, test } from 'vitest'
import { VirtualClock } from '../../../../../src/base/clock.js'
import { Subscriptions } from '../../../../../src/engines/redis/clients/subscriptions.js'
import { Heard } from '../../../../support/redis/heard.js'
import { FakeServer, turns } from './fake-server.js'

let clock: VirtualClock
let server: FakeServer
let heard: Heard
let subscriptions: Subscriptions

beforeEach(() => {
  clock = new VirtualClock()
  server = new FakeServer()
  heard = new Heard()
  subscriptions = new Subscriptions({
    name: 'redis://there',
    connect: server.connect,
    sharded: false,
    listener: heard,
    clock,
    timeouts: { connect: 1000, answer: 500, heartbeat: 2000 },
  })
})

async function advance(duration: number): Promise<void> {
  clock.advance(duration)
  await turns()
}

test('the first channel opens the connection, further ones share it', async () => {
  expect(server.tries).toBe(0)
  await Promise.all([
    subscriptions.subscribe('a'),
    subscriptions.subscribe('b'),
    subscriptions.subscribe('a'),
  ])
  expect(server.connections).toHaveLength(1)
  expect(server.last.sent).toEqual(['SUBSCRIBE a', 'SUBSCRIBE b'])
  server.last.listener.message('a', '1')
  expect(heard.messages).toEqual(['a: 1'])
  expect(heard.resubscriptions).toBe(0)
})

test('after a break every channel is subscribed before missed messages are reported', async () => {
  await subscriptions.subscribe('a')
  await subscriptions.subscribe('b')
  await subscriptions.subscribe('c')
  await subscriptions.unsubscribe('b')
  let told = 0
  const enter = server.answer
  server.answer = (args, resolve, reject) => {
    told = heard.resubscriptions
    enter(args, resolve, reject)
  }
  server.last.break()
  await advance(100)
  expect(server.connections).toHaveLength(2)
  expect(server.last.sent).toEqual(['SUBSCRIBE a', 'SUBSCRIBE c'])
  expect(told).toBe(0)
  expect(heard.resubscriptions).toBe(1)
})

test('a connection that has gone silent is noticed and replaced', async () => {
  await subscriptions.subscribe('a')
  await advance(2000)
  await advance(2000)
  expect(server.last.sent).toEqual(['SUBSCRIBE a', 'PING', 'PING'])
  server.answer = ([name], resolve) => {
    if (name !== 'PING') resolve('OK')
  }
  await advance(2000)
  await advance(500)
  expect(server.connections[0]!.isDestroyed).toBe(true)
  await advance(100)
  expect(server.connections).toHaveLength(2)
  expect(heard.resubscriptions).toBe(1)
})

test('a channel that is entered while the connection is replaced waits for the next one', async () => {
  await subscriptions.subscribe('a')
  server.last.break()
  await subscriptions.subscribe('b')
  expect(server.connections).toHaveLength(2)
  expect(server.last.sent).toEqual(['SUBSCRIBE a', 'SUBSCRIBE b'])
})
