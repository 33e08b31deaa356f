import { expect, test } from 'vitest'
import type { Reply } from '../../../../src/engines/redis/clients/connection.js'
import type { Answered } from '../../../../src/engines/redis/clients/redis-link.js'
import { Replicas } from '../../../../src/engines/redis/replicas.js'

/** A server whose commands the test answers. */
class FakeServer {
  epoch = 1
  readonly sent: string[] = []
  readonly answers: ((reached: number) => void)[] = []

  send(...[command]: readonly (readonly string[])[]): Promise<Reply> {
    this.sent.push(command!.join(' '))
    return new Promise(resolve => this.answers.push(resolve))
  }

  /** Returns an answer over the current connection. */
  get answered(): Answered {
    return { reply: 1, server: this, epoch: this.epoch }
  }
}

const turn = (): Promise<void> => new Promise(setImmediate)

test('one question is under way at a time, and calls that ask meanwhile share the next', async () => {
  const server = new FakeServer()
  const replicas = new Replicas(2)
  const first = replicas.missed(server.answered)
  await turn()
  const others = [replicas.missed(server.answered), replicas.missed(server.answered)]
  await turn()
  expect(server.sent).toEqual(['WAIT 2 1000'])
  server.answers[0]!(2)
  expect(await first).toBeUndefined()
  await turn()
  expect(server.sent).toEqual(['WAIT 2 1000', 'WAIT 2 1000'])
  server.answers[1]!(1)
  const missed = { why: 'only 1 of 2 replicas had it within 1000 ms' }
  expect(await Promise.all(others)).toEqual([missed, missed])
})

test('WAIT over a new connection does not confirm earlier writes', async () => {
  const server = new FakeServer()
  const replicas = new Replicas(1)
  const missed = replicas.missed(server.answered)
  await turn()
  server.epoch++
  server.answers[0]!(1)
  expect(await missed).toEqual({ why: 'the connection broke before it was known whether 1 replicas have it' })
  const next = replicas.missed(server.answered)
  await turn()
  server.answers[1]!(1)
  expect(await next).toBeUndefined()
})
