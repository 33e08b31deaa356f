import { beforeEach, expect, test } from 'vitest'
import { VirtualClock } from '../../../../../src/base/clock.js'
import { ReconnectingConnection } from '../../../../../src/engines/redis/clients/reconnecting-connection.js'
import { RedisReplyError } from '../../../../../src/engines/redis/clients/connection.js'
import { FakeServer, turns } from './fake-server.js'

let clock: VirtualClock
let server: FakeServer
let told: string[]
let connection: ReconnectingConnection

beforeEach(() => {
  clock = new VirtualClock()
  server = new FakeServer()
  told = []
  connection = new ReconnectingConnection({
    name: 'redis://there',
    connect: server.connect,
    prepare: async made => {
      await made.send(['PREPARE'])
    },
    ready: isFirst => told.push(isFirst ? 'first' : 'again'),
    failed: () => told.push('failed'),
    clock,
    timeouts: { connect: 1000, answer: 500, heartbeat: 10_000 },
  })
})

/** Lets the pause before the next attempt pass. */
async function nextAttempt(): Promise<void> {
  clock.advance(clock.nextAt()! - clock.now())
  await turns()
}

const unavailable = (reason: string) => ({ code: 'UNAVAILABLE', message: expect.stringContaining(reason) })

test('nothing is sent before it is connected, and what is sent then is prepared first', async () => {
  await expect(connection.send(['GET'])).rejects.toMatchObject(unavailable('not connected'))
  await connection.connect()
  await connection.connect()
  expect(await connection.send(['GET', 'k'])).toBe('GET k')
  expect(server.connections).toHaveLength(1)
  expect(server.last.sent).toEqual(['PREPARE', 'GET k'])
  expect(connection.epoch).toBe(1)
  expect(told).toEqual(['first'])
})

test('a first attempt that fails is the only one, and says why', async () => {
  server.door = 'closed'
  await expect(connection.connect()).rejects.toMatchObject(unavailable('refused'))
  expect(clock.nextAt()).toBeUndefined()
  expect(told).toEqual([])
  server.door = 'open'
  server.answer = (_, __, reject) => reject(new RedisReplyError('LOADING Redis is loading'))
  await expect(connection.connect()).rejects.toMatchObject(unavailable('LOADING'))
  expect(server.last.isDestroyed).toBe(true)
})

test('an attempt that takes too long is given up whole', async () => {
  server.door = 'frozen'
  const connecting = connection.connect()
  clock.advance(1000)
  await expect(connecting).rejects.toMatchObject(unavailable('not ready within 1000 ms'))
  expect(server.abandoned).toBe(1)
  server.door = 'open'
  server.answer = () => undefined
  const preparing = connection.connect()
  await turns()
  clock.advance(1000)
  await expect(preparing).rejects.toMatchObject(unavailable('not ready within 1000 ms'))
  expect(server.last.isDestroyed).toBe(true)
})

test('a lost connection is replaced, at once or when the server is back', async () => {
  await connection.connect()
  server.last.break()
  await turns()
  expect(connection.isReady).toBe(true)
  expect(connection.epoch).toBe(2)
  server.door = 'closed'
  server.last.break()
  for (let attempt = 0; attempt < 9; attempt++) await nextAttempt()
  expect(connection.isReady).toBe(false)
  server.door = 'open'
  await nextAttempt()
  expect(connection.isReady).toBe(true)
  expect(connection.epoch).toBe(3)
  expect(told).toEqual(['first', 'failed', 'again', ...Array<string>(11).fill('failed'), 'again'])
})

test('after a loss there is something to wait for until the first attempts to connect have ended', async () => {
  await connection.connect()
  expect(connection.reconnecting).toBeUndefined()
  server.last.break()
  await connection.reconnecting
  expect(await connection.send(['GET', 'k'])).toBe('GET k')
  await turns()
  expect(connection.reconnecting).toBeUndefined()
  server.door = 'closed'
  server.last.break()
  const tries = server.tries
  await connection.reconnecting
  expect(server.tries).toBe(tries + 1)
  await expect(connection.send(['GET'])).rejects.toMatchObject(unavailable('refused'))
  expect(connection.reconnecting).toBeUndefined()
})

test('a connection that was given up for a late reply is not waited for', async () => {
  await connection.connect()
  connection.drop(new Error('late'))
  expect(connection.reconnecting).toBeUndefined()
})

test('a command that is not answered in time fails and takes its connection with it', async () => {
  await connection.connect()
  server.answer = ([name], resolve) => name === 'PREPARE' && resolve('OK')
  const first = connection.send(['INCR', 'k'])
  clock.advance(100)
  const second = connection.send(['INCR', 'k'])
  clock.advance(400)
  await expect(first).rejects.toMatchObject({
    code: 'INDETERMINATE',
    message: expect.stringContaining('after 500 ms'),
  })
  await expect(second).rejects.toMatchObject({ code: 'INDETERMINATE' })
  expect(server.connections[0]!.isDestroyed).toBe(true)
  server.answer = (_, resolve) => resolve('OK')
  await turns()
  expect(await connection.send(['INCR', 'k'])).toBe('OK')
  expect(connection.epoch).toBe(2)
})

test('a process that was stopped finds its answers before it calls them late, and no timer is left', async () => {
  await connection.connect()
  let answer: (() => void) | undefined
  server.answer = (_, resolve) => (answer = () => resolve('done'))
  const sent = connection.send(['GET', 'k'])
  clock.advance(1000)
  answer!()
  expect(await sent).toBe('done')
  await turns()
  expect(clock.nextAt()).toBeUndefined()
  expect(server.last.isDestroyed).toBe(false)
})

test('an error that the server answers with is handed on, and the connection stays', async () => {
  await connection.connect()
  server.answer = (_, __, reject) => reject(new RedisReplyError('WRONGTYPE no'))
  await expect(connection.send(['INCR', 'k'])).rejects.toMatchObject({ code: 'WRONGTYPE' })
  expect(connection.isReady).toBe(true)
})

test('a server that has become a replica is left for the next one', async () => {
  await connection.connect()
  server.answer = (_, __, reject) => reject(new RedisReplyError('READONLY no'))
  await expect(connection.send(['SET', 'k'])).rejects.toMatchObject({ code: 'READONLY' })
  expect(connection.isReady).toBe(false)
})

test('a connection that is lost while it is prepared is not used', async () => {
  server.answer = (_, resolve) => {
    resolve('OK')
    server.last.listener.lost(new Error('gone again'))
  }
  await expect(connection.connect()).rejects.toMatchObject(unavailable('gone again'))
  expect(connection.isReady).toBe(false)
  await turns()
  expect(connection.epoch).toBe(0)
  expect(told).toEqual([])
})

test('it keeps a process alive for answers only', async () => {
  await connection.connect()
  expect(server.last.keepsAlive).toBe(false)
  let reply!: (text: string) => void
  server.answer = (_, resolve) => (reply = resolve)
  const sent = connection.send(['GET'])
  expect(server.last.keepsAlive).toBe(true)
  reply('OK')
  await sent
  expect(server.last.keepsAlive).toBe(false)
})

test('after it was closed nothing runs', async () => {
  await connection.connect()
  server.answer = () => undefined
  const sent = connection.send(['GET'])
  connection.close()
  await expect(sent).rejects.toMatchObject({ code: 'INDETERMINATE' })
  expect(server.last.isDestroyed).toBe(true)
  await expect(connection.send(['GET'])).rejects.toMatchObject(unavailable('closed'))
  await expect(connection.connect()).rejects.toMatchObject(unavailable('closed'))
  server.last.listener.lost(new Error('late news'))
  clock.advance(60_000)
  await turns()
  expect(server.tries).toBe(1)
})

test('a connection that is lost right after it was made again is waited for, too', async () => {
  await connection.connect()
  server.last.break()
  await connection.reconnecting
  server.door = 'frozen'
  server.last.break()
  await turns()
  expect(connection.isReady).toBe(false)
  expect(connection.reconnecting).toBeDefined()
})
