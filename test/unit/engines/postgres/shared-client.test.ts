import { expect, test } from 'vitest'
import { VirtualClock } from '../../../../src/base/clock.js'
import { sharedClient } from '../../../../src/engines/postgres/clients/shared-client.js'
import type { SqlClient } from '../../../../src/engines/postgres/clients/sql-client.js'
import { pass } from '../../../support/passing.js'

interface Connection {
  readonly statements: string[]
  receive(channel: string, message: string): void
  /** Ends the connection, as the server may do. */
  lose(): void
  answers: boolean
}

let places = 0

/** Creates clients of one place, and records their use of the server. */
function scene() {
  const place = `place ${places++}`
  const clock = new VirtualClock()
  const seen = { made: 0, closed: 0, stopped: 0, connections: [] as Connection[] }
  const make = (): Promise<SqlClient> => {
    seen.made++
    return Promise.resolve({
      name: 'server',
      query: text => Promise.resolve(text),
      run: () => Promise.resolve(),
      listen: (channel, onMessage, onLost) => {
        const statements = [`listen "${channel}"`]
        const connection: Connection = {
          statements,
          receive: (to, message) => onMessage(message, to),
          lose: onLost,
          answers: true,
        }
        seen.connections.push(connection)
        return Promise.resolve({
          query: text => {
            statements.push(text)
            return connection.answers ? Promise.resolve('') : new Promise(() => undefined)
          },
          run: text => {
            statements.push(text)
            return connection.answers ? Promise.resolve() : new Promise(() => undefined)
          },
          stop: () => {
            seen.stopped++
            return Promise.resolve()
          },
        })
      },
      close: () => {
        seen.closed++
        return Promise.resolve()
      },
    })
  }
  const box = (): Promise<SqlClient> => sharedClient(place, make, clock)
  /** Starts to collect the messages that a box receives. */
  const listen = async (client: SqlClient, channel: string) => {
    const received: string[] = []
    const listening = await client.listen(
      channel,
      message => received.push(message),
      () => received.push('lost'),
    )
    return { received, listening }
  }
  return { clock, seen, box, listen }
}

test('boxes of one place share a client, and the last one closes it', async () => {
  const { seen, box } = scene()
  const [one, other] = await Promise.all([box(), box()])
  expect(await one.query('select 1', [])).toBe('select 1')
  await one.close()
  await one.close()
  expect(seen).toMatchObject({ made: 1, closed: 0 })
  await other.close()
  expect(seen).toMatchObject({ made: 1, closed: 1 })
  const next = await box()
  expect(seen.made).toBe(2)
  await next.close()
})

test('a box that opens while the last one closes gets connections that are open', async () => {
  const { seen, box } = scene()
  const one = await box()
  const opening = box()
  const closing = one.close()
  const other = await opening
  await closing
  expect(seen.made - seen.closed).toBe(1)
  await other.close()
  expect(seen.made).toBe(seen.closed)
})

test('a failed attempt to make a client is not kept', async () => {
  const clock = new VirtualClock()
  const fail = (): Promise<SqlClient> => Promise.reject(new Error('no package'))
  await expect(sharedClient('failing', fail, clock)).rejects.toThrow('no package')
  await expect(sharedClient('failing', fail, clock)).rejects.toThrow('no package')
})

test('boxes listen over one connection, and each receives what is for it', async () => {
  const { seen, box, listen } = scene()
  const [one, other] = await Promise.all([box(), box()])
  const [first, second] = await Promise.all([listen(one, 'a'), listen(other, 'b')])
  const [connection] = seen.connections
  connection!.receive('a', 'x')
  connection!.receive('b', 'y')
  connection!.receive('c', 'z')
  expect([first.received, second.received]).toEqual([['x'], ['y']])
  await first.listening.stop()
  connection!.receive('a', 'more')
  connection!.receive('b', 'more')
  expect([first.received, second.received]).toEqual([['x'], ['y', 'more']])
  expect(seen.stopped).toBe(0)
  await second.listening.stop()
  await pass(new VirtualClock(), 0)
  expect(seen).toMatchObject({
    stopped: 1,
    connections: [{ statements: ['listen "a"', 'listen "b"', 'unlisten "a"'] }],
  })
})

test.each([
  ['the server ends it', (connection: Connection) => connection.lose()],
  ['a box finds it broken', (_: Connection, stop: () => unknown) => stop()],
])('all that listen over a connection are told when %s, and share the next one', async (_, end) => {
  const { seen, box, listen } = scene()
  const [one, other] = await Promise.all([box(), box()])
  const [first, second] = await Promise.all([listen(one, 'a'), listen(other, 'b')])
  end(seen.connections[0]!, () => first.listening.stop(true))
  expect(second.received).toEqual(['lost'])
  await first.listening.stop()
  const [third, fourth] = await Promise.all([listen(one, 'a'), listen(other, 'b')])
  await second.listening.stop(true)
  expect(seen.connections).toHaveLength(2)
  seen.connections[1]!.receive('a', 'x')
  seen.connections[1]!.receive('b', 'y')
  expect([third.received, fourth.received]).toEqual([['x'], ['y']])
})

test('a box that can not listen over the connection of others ends it', async () => {
  const { clock, seen, box, listen } = scene()
  const [one, other] = await Promise.all([box(), box()])
  const first = await listen(one, 'a')
  seen.connections[0]!.answers = false
  const failing = listen(other, 'b').catch(({ message }: Error) => message)
  await pass(clock, 5000)
  expect(await failing).toBe('no answer within 5000 ms')
  expect(first.received).toEqual(['lost'])
  await listen(other, 'b')
  expect(seen.connections).toHaveLength(2)
})

test('a box that begins to listen as the connection is lost gets an error', async () => {
  const { seen, box, listen } = scene()
  const [one, other] = await Promise.all([box(), box()])
  await listen(one, 'a')
  const [connection] = seen.connections as [Connection]
  const failing = listen(other, 'b').catch(({ message }: Error) => message)
  while (connection.statements.length < 2) await Promise.resolve()
  connection.lose()
  expect(await failing).toBe('the connection was lost')
  await listen(other, 'b')
  expect(seen.connections).toHaveLength(2)
})

test('a shared run continues after its first caller has closed', async () => {
  const { box } = scene()
  const [one, other] = await Promise.all([box(), box()])
  const done = one.together!(async statements => {
    await one.close()
    await statements.query('select 1', [])
  })
  await other.together!(() => Promise.reject(new Error('done twice')))
  await done
})

test('a closed box runs no statement over the connections of others', async () => {
  const { box } = scene()
  const [one, other] = await Promise.all([box(), box()])
  await one.close()
  await expect(one.query('select 1', [])).rejects.toThrow('the box was closed')
  expect(await other.query('select 1', [])).toBe('select 1')
})
