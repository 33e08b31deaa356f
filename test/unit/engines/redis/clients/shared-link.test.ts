import { beforeEach, expect, test } from 'vitest'
import type { LinkListener, RedisLink } from '../../../../../src/engines/redis/clients/redis-link.js'
import { sharedLink } from '../../../../../src/engines/redis/clients/shared-link.js'
import { Heard } from '../../../../support/redis/heard.js'

/** A link that records its calls. */
class FakeLink implements RedisLink {
  readonly name = 'redis://there'
  readonly cluster = false
  readonly epoch = 1
  readonly asked: string[] = []
  isClosed = false

  constructor(readonly listener: LinkListener) {}

  async connect(): Promise<void> {
    await connecting
  }

  async command(_route: string, [name]: readonly string[]): Promise<string> {
    return `${name} done`
  }

  async call(): Promise<never> {
    throw new Error('not used')
  }

  async masters(): Promise<[]> {
    return []
  }

  async subscribe(channel: string): Promise<void> {
    this.asked.push(`SUBSCRIBE ${channel}`)
  }

  async unsubscribe(channel: string): Promise<void> {
    this.asked.push(`UNSUBSCRIBE ${channel}`)
  }

  async close(): Promise<void> {
    this.isClosed = true
  }
}

let made: FakeLink[]
let connecting: Promise<void>

beforeEach(() => {
  made = []
  connecting = Promise.resolve()
})

function linkOf(key: string, listener: LinkListener = new Heard()): RedisLink {
  const make = (to: LinkListener): RedisLink => {
    const link = new FakeLink(to)
    made.push(link)
    return link
  }
  return sharedLink({ key, name: 'redis://there', cluster: false, make })(listener)
}

async function connected(key: string, listener?: LinkListener): Promise<RedisLink> {
  const link = linkOf(key, listener)
  await link.connect()
  return link
}

test('a message reaches the subscribers of its channel, until they unsubscribe or close', async () => {
  const heard = [new Heard(), new Heard(), new Heard()] as const
  const [first, second, third] = await Promise.all(heard.map(listener => connected('a', listener)))
  await Promise.all([first!.subscribe('x'), second!.subscribe('x'), third!.subscribe('y')])
  const { asked, listener } = made[0]!
  listener.message('x', '1')
  await first!.unsubscribe('x')
  await first!.unsubscribe('x')
  listener.message('x', '2')
  listener.message('y', '3')
  await second!.close()
  listener.message('x', '4')
  expect(heard.map(({ messages }) => messages)).toEqual([['x: 1'], ['x: 1', 'x: 2'], ['y: 3']])
  expect(asked).toEqual(['SUBSCRIBE x', 'SUBSCRIBE x', 'SUBSCRIBE y', 'UNSUBSCRIBE x'])
  await Promise.all([first!.close(), third!.close()])
})

test('a link that does not connect holds no connections, and can try again', async () => {
  connecting = Promise.reject(new Error('refused'))
  const link = linkOf('a')
  await expect(link.connect()).rejects.toThrow('refused')
  expect(made.map(({ isClosed }) => isClosed)).toEqual([true])
  connecting = Promise.resolve()
  await link.connect()
  expect(await link.command('', ['GET'])).toBe('GET done')
  await link.close()
})

test('a link that is closed while it connects rejects, and leaves the others connected', async () => {
  const other = await connected('a')
  const closed = linkOf('a')
  const connect = closed.connect()
  await closed.close()
  await expect(connect).rejects.toThrow('the link was closed')
  await expect(closed.connect()).rejects.toThrow('the link was closed')
  expect(made.map(({ isClosed }) => isClosed)).toEqual([false])
  await other.close()
})
