import { expect, test } from 'vitest'
import { UnavailableError } from 'signalbox'
import type { Listener, SessionInfo } from 'signalbox/engine'
import { VirtualClock } from 'signalbox/limits'
import type { RedisServer } from 'signalbox/redis'
import { NumberClock } from '../src/number-clock.js'
import { Voter } from '../src/voter.js'

const MEMBER: SessionInfo = { session: 's', host: 'h', pid: 1, label: undefined }
const LISTENER = {} as Listener

/** A server that can be down. */
class Server {
  isUp = true
  joins = 0
  /** If it is set, a join waits until it is called. */
  answer: (() => void) | undefined
  readonly engine = {
    name: 'redis://server',
    join: async () => {
      this.joins++
      if (this.answer) await new Promise<void>(resolve => (this.answer = resolve))
      if (!this.isUp) throw new UnavailableError('connection refused')
    },
    submit: async () => true,
    leave: async () => undefined,
  } as unknown as RedisServer
  readonly clock = new VirtualClock()
  readonly voter = new Voter(this.engine, new NumberClock(), this.clock)

  ask(): Promise<boolean> {
    const request = { id: 'r', session: 's', claims: [], label: undefined }
    return this.voter.submit({ type: 'release', request, number: 1 })
  }

  async pass(milliseconds: number): Promise<void> {
    this.clock.advance(milliseconds)
    await new Promise(resolve => setImmediate(resolve))
  }
}

test('the first attempt to join rejects, and further ones follow until one succeeds', async () => {
  const server = new Server()
  server.isUp = false
  await expect(server.voter.join(MEMBER, LISTENER)).rejects.toThrow('connection refused')
  await expect(server.ask()).rejects.toMatchObject({
    code: 'UNAVAILABLE',
    cause: expect.any(UnavailableError),
  })
  expect(server.voter.isLate).toBe(true)
  await server.pass(50)
  expect(server.joins).toBe(2)
  await expect(server.ask()).rejects.toThrow('not yet connected to')
  server.isUp = true
  await server.pass(100)
  expect(await server.ask()).toBe(true)
  await server.pass(60_000)
  expect(server.joins).toBe(3)
})

test('an operation waits for the first attempt, and for no later one', async () => {
  const server = new Server()
  server.answer = () => undefined
  const joining = server.voter.join(MEMBER, LISTENER)
  const asked = server.ask()
  server.isUp = false
  server.answer()
  await expect(joining).rejects.toThrow(UnavailableError)
  await expect(asked).rejects.toThrow('not yet connected to')
  await server.pass(50)
  expect(server.joins).toBe(2)
  await expect(server.ask()).rejects.toThrow('not yet connected to')
  server.isUp = true
  server.answer()
  await server.pass(0)
  expect(await server.ask()).toBe(true)
})

test('a server that was left is not tried again', async () => {
  const server = new Server()
  server.isUp = false
  await expect(server.voter.join(MEMBER, LISTENER)).rejects.toThrow(UnavailableError)
  await server.voter.leave()
  await server.pass(60_000)
  expect(server.joins).toBe(1)
})
