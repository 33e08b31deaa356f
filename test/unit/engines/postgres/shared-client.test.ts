import { expect, test } from 'vitest'
import { VirtualClock } from '../../../../src/base/clock.js'
import { sharedClient } from '../../../../src/engines/postgres/clients/shared-client.js'
import { SqlError, type SqlClient } from '../../../../src/engines/postgres/clients/sql-client.js'
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
  const seen = { made: 0, closed: 0, stopped: 0, running: 0, connections: [] as Connection[] }
  /** Statements and new clients wait for these promises. */
  const server = { answers: () => Promise.resolve(), isFound: Promise.resolve() }
  const make = (): Promise<SqlClient> => {
    seen.made++
    return server.isFound.then(() => ({
      name: 'server',
      query: async text => {
        seen.running++
        await server.answers().finally(() => seen.running--)
        return text
      },
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
    }))
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
  return { clock, seen, server, box, listen }
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

test('boxes run four statements at a time while those are fast', async () => {
  const { clock, seen, server, box } = scene()
  const boxes = await Promise.all(Array.from({ length: 30 }, box))
  server.answers = () => new Promise(resolve => clock.after(20, resolve))
  let most = 0
  const all = boxes.flatMap(each => Array.from({ length: 5 }, () => each.query('select 1', [])))
  while (seen.running > 0) {
    most = Math.max(most, seen.running)
    await pass(clock, 10)
  }
  await Promise.all(all)
  expect(most).toBe(4)
  expect(seen.made).toBe(1)
})

test('statements that take long get further clients, up to one for each box, which are closed when idle', async () => {
  const { clock, seen, server, box } = scene()
  const boxes = await Promise.all(Array.from({ length: 10 }, box))
  server.answers = () => new Promise(resolve => clock.after(1000, resolve))
  const all = Promise.all(Array.from({ length: 60 }, (_, index) => boxes[index % 10]!.query('select 1', [])))
  const running: number[] = []
  for (let waited = 0; waited < 6; waited++) {
    running.push(seen.running)
    await pass(clock, 101)
  }
  // The number of running statements doubles each time. Once there is a client for each box, the other statements wait
  // for the connections.
  expect(running).toEqual([4, 8, 16, 32, 60, 60])
  expect(seen.made).toBe(10)
  await pass(clock, 1000)
  await all
  await pass(clock, 58_000)
  expect(seen.closed).toBe(0)
  // Clients that are in use again stay open.
  const again = Array.from({ length: 8 }, () => boxes[0]!.query('select 1', []))
  server.answers = () => new Promise(resolve => clock.after(3000, resolve))
  again.push(...Array.from({ length: 8 }, () => boxes[0]!.query('select 1', [])))
  await pass(clock, 2500)
  expect(seen.closed).toBe(6)
  await pass(clock, 3000)
  await Promise.all(again)
  await pass(clock, 60_000)
  expect(seen.closed).toBe(9)
  await Promise.all(boxes.map(each => each.close()))
  expect(seen.closed).toBe(10)
})

test('one box alone never waits for a further client', async () => {
  const { clock, seen, server, box } = scene()
  const one = await box()
  server.answers = () => new Promise(resolve => clock.after(1000, resolve))
  const all = Array.from({ length: 9 }, () => one.query('select 1', []))
  expect(seen.running).toBe(9)
  await pass(clock, 1000)
  await Promise.all(all)
  expect(seen.made).toBe(1)
})

test('statements that wait when the last box is closed are not lost', async () => {
  const { clock, seen, server, box } = scene()
  const [one, other] = await Promise.all([box(), box()])
  server.answers = () => new Promise(resolve => clock.after(50, resolve))
  const all = Promise.all(Array.from({ length: 7 }, () => one.query('select 1', [])))
  expect(seen.running).toBe(4)
  await Promise.all([one.close(), other.close()])
  expect(seen.running).toBe(7)
  await pass(clock, 100)
  await all
})

test('a further client that comes after the last box was closed is closed', async () => {
  const { clock, seen, server, box } = scene()
  const [one, other] = await Promise.all([box(), box()])
  server.answers = () => new Promise(resolve => clock.after(1000, resolve))
  const all = Promise.all(Array.from({ length: 5 }, () => one.query('select 1', [])))
  let find!: () => void
  server.isFound = new Promise(resolve => (find = resolve))
  await pass(clock, 200)
  expect(seen.made).toBe(2)
  await Promise.all([one.close(), other.close()])
  find()
  await pass(clock, 1000)
  await all
  expect(seen.closed).toBe(2)
})

test('while the server accepts no further connections, statements wait for those that there are', async () => {
  const { clock, seen, server, box } = scene()
  const boxes = await Promise.all(Array.from({ length: 10 }, box))
  const full = new SqlError('the server has too many connections', '53300', false, undefined)
  let connections = 2
  let most = 0
  server.answers = () =>
    new Promise((resolve, reject) => {
      if (seen.running > connections) return reject(full)
      most = Math.max(most, seen.running)
      clock.after(200, resolve)
    })
  const all = Promise.all(boxes.map(each => each.query('select 1', [])))
  await pass(clock, 1200)
  await all
  expect(most).toBe(2)
  connections = 4
  await pass(clock, 5000)
  const later = boxes.map(each => each.query('select 1', []))
  expect(seen.running).toBe(4)
  await pass(clock, 1200)
  await Promise.all(later)
  expect(most).toBe(4)
  connections = 0
  await expect(boxes[0]!.query('select 1', [])).rejects.toBe(full)
})

test('a box with many statements does not delay those of others', async () => {
  const { clock, server, box } = scene()
  const [one, other] = await Promise.all([box(), box()])
  server.answers = () => new Promise(resolve => clock.after(10, resolve))
  let ended = 0
  const all = Array.from({ length: 200 }, async () => {
    await one.query('select 1', [])
    ended++
  })
  await pass(clock, 50)
  await Promise.all([other.query('select 1', []), pass(clock, 20)])
  expect(ended).toBeLessThan(40)
  await pass(clock, 1000)
  await Promise.all(all)
})

test('statements that wait a short time each get no further client', async () => {
  const { clock, seen, server, box } = scene()
  const boxes = await Promise.all(Array.from({ length: 9 }, box))
  server.answers = () => new Promise(resolve => clock.after(40, resolve))
  const end = clock.now() + 2000
  const all = boxes.map(async each => {
    while (clock.now() < end) await each.query('select 1', [])
  })
  await pass(clock, 2200)
  await Promise.all(all)
  expect(seen.made).toBe(1)
})
