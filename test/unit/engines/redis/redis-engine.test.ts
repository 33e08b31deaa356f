import { expect, test } from 'vitest'
import { VirtualClock } from '../../../../src/base/clock.js'
import type { Listener } from '../../../../src/engine/contract.js'
import { RedisReplyError, type Reply } from '../../../../src/engines/redis/clients/connection.js'
import { ConnectionLostError, unanswered } from '../../../../src/engines/redis/clients/failures.js'
import type { Answered, LinkListener, RedisLink } from '../../../../src/engines/redis/clients/redis-link.js'
import { RedisEngine } from '../../../../src/engines/redis/redis-engine.js'
import { lockRequest } from '../../../support/lock-request.js'

const claims = [{ key: 'key', mode: 'exclusive' }] as const
const waiting = lockRequest('s.1', claims)
const held = lockRequest('s.2', claims)
/** Replies of the code in Redis: queued behind the holder, and no such grant. */
const QUEUED: Reply = [['queued', 1, -1], []]
const GONE: Reply = [0, []]
const lost = (): Error => new ConnectionLostError('lost the connection')

/** Starts an engine with a server whose replies and subscriptions the test settles. Records the woken requests. */
async function start() {
  const clock = new VirtualClock()
  const woken: string[] = []
  const replies: (Reply | Error | Promise<Reply>)[] = []
  const sent: string[] = []
  let link: LinkListener | undefined
  let subscribed!: () => void
  const server = { epoch: 1 } as Answered['server']
  const engine = new RedisEngine(
    listener => {
      link = listener
      return {
        name: 'redis://host',
        cluster: false,
        connect: () => Promise.resolve(),
        command: () => Promise.resolve(0),
        call: async (_: string, args: readonly string[]) => {
          sent.push(args.join(' '))
          const reply = await replies.shift()!
          if (reply instanceof Error) throw reply
          return { reply, server, epoch: server.epoch }
        },
        close: () => Promise.resolve(),
        subscribe: () => new Promise<void>(resolve => (subscribed = resolve)),
      } as Partial<RedisLink> as RedisLink
    },
    { prefix: '', minReplicas: 0, layout: 'string' },
    clock,
  )
  const listener: Partial<Listener> = { wake: id => void woken.push(id), missed: () => undefined }
  await engine.join({ session: 's', host: 'h', pid: 1, label: undefined }, listener as Listener)
  replies.push(QUEUED)
  await engine.submit({ type: 'enqueue', request: waiting, lease: 10_000, wait: 10_000 })
  return {
    clock,
    engine,
    replies,
    sent,
    woken,
    link: link!,
    subscribed: async () => {
      subscribed()
      await new Promise(setImmediate)
    },
  }
}

test('a waiter looks at its place when its subscription begins, because hints before it are lost', async () => {
  const { woken, subscribed } = await start()
  expect(woken).toEqual([])
  await subscribed()
  expect(woken).toEqual([waiting.id])
})

test('waiters look at their places when messages may have been missed', async () => {
  const { link, woken, subscribed } = await start()
  await subscribed()
  woken.length = 0
  link.resubscribed()
  expect(woken).toEqual([waiting.id])
})

test('waiters look at their places after a lost reply, which may have had hints for them', async () => {
  const { clock, engine, replies, woken, subscribed } = await start()
  await subscribed()
  for (const losses of [[unanswered('redis://host', 1000)], [lost(), lost()], [lost(), GONE]]) {
    woken.length = 0
    replies.push(...losses)
    const release = engine.submit({ type: 'release', request: held, number: 1 })
    await expect(release).rejects.toMatchObject({ code: 'INDETERMINATE' })
    clock.advance(100)
    expect(woken).toEqual([waiting.id])
  }
})

test('a box that leaves cancels its requests', async () => {
  const { engine, replies, sent } = await start()
  sent.length = 0
  replies.push([0, []])
  await engine.leave()
  expect(sent).toHaveLength(1)
  expect(sent[0]).toContain(waiting.id)
})

const forbidden = new RedisReplyError("NOPERM this user has no permissions to run the 'fcall' command")

test.each([
  { what: 'lost a function', before: [], reply: 'ERR Function not found', commands: ['FCALL', 'FCALL'] },
  { what: 'forbids functions', before: [], reply: forbidden.message, commands: ['FCALL', 'EVALSHA'] },
  {
    what: 'lost a script',
    before: [forbidden, GONE],
    reply: 'NOSCRIPT No matching script.',
    commands: ['EVALSHA', 'EVAL'],
  },
])(
  'calls wait for those that come back because the server has lost the code, so their order stays: it $what',
  async given => {
    const { engine, replies, sent } = await start()
    replies.push(...given.before)
    if (given.before.length > 0) await engine.submit({ type: 'release', request: held, number: 1 })
    sent.length = 0
    let called!: (reply: Reply) => void
    replies.push(new RedisReplyError(given.reply))
    replies.push(new Promise<Reply>(resolve => (called = resolve)))
    const first = engine.submit({ type: 'release', request: held, number: 1 })
    await new Promise(setImmediate)
    const second = engine.submit({ type: 'cancel', request: waiting })
    await new Promise(setImmediate)
    expect(sent.map(text => text.split(' ')[0])).toEqual(given.commands)
    replies.push(GONE)
    called([1, []])
    expect(await first).toBe(true)
    await second
    expect(sent.at(-1)).toContain(waiting.id)
  },
)
