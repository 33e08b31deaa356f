import { afterAll, describe, expect, test } from 'vitest'
import {
  AbortedError,
  Barrier,
  ClosedError,
  DoubleBarrier,
  Group,
  InvalidArgumentError,
  NodeDeletedError,
  NodeQueue,
  SessionExpiredError,
  WatchedValue,
  ZooKeeper,
  type GroupChange,
  type Round,
} from 'signalbox-zookeeper'
import { soFar } from '../../packages/conformance/src/time.js'
import { Proxy } from '../../apps/chaos/servers/proxy.js'
import { until } from '../support/servers/until.js'
import { startZooKeeper } from '../support/servers/zookeeper.js'

let places = 0

const server = await startZooKeeper()
const one = await ZooKeeper.connect(server.address)
const other = await ZooKeeper.connect(server.address)

afterAll(async () => {
  await Promise.all([one.close(), other.close()])
  await server.kill()
})

/** Returns a path that no other test uses, two levels below any existing node. */
function place(): string {
  return `/folder-${++places}/place`
}

function names(members: readonly { readonly name: string }[]): string {
  return members.map(({ name }) => name).join()
}

describe.concurrent('a group', () => {
  test('shows its members, and reports who joins and leaves', async () => {
    const path = place()
    const group = new Group(one, path)
    expect(await group.members()).toEqual([])
    await using view = await group.watch()
    const changes: GroupChange[] = []
    const following = (async () => {
      for await (const change of view) changes.push(change)
    })()
    const odd = 'a/b ünï-\u{1F682}%'
    const first = await group.join(odd, 'here')
    const twin = await new Group(other, path).join(odd, 'there')
    const third = await ZooKeeper.connect(server.address)
    await new Group(third, path).join('third')
    await until(() => view.members.length === 3)
    expect(view.members).toEqual(await group.members())
    expect(names(view.members)).toBe(`${odd},${odd},third`)
    expect(view.members.map(({ data }) => data.toString())).toEqual(['here', 'there', ''])
    await third.close()
    await first.leave()
    await until(() => view.members.length === 1)
    expect(view.members).toEqual([twin.member])
    await twin.leave()
    await twin.leave()
    await until(() => view.members.length === 0)
    await view.close()
    await following
    expect(() => view.members).toThrow(ClosedError)
    expect(names(changes.flatMap(({ joined }) => joined))).toBe(`${odd},${odd},third`)
    expect(changes.flatMap(({ left }) => left)).toHaveLength(3)
    expect(changes.at(-1)!.members).toEqual([])
    expect(() => new Group(one, '/')).toThrow(InvalidArgumentError)
    await expect(group.join('\ud83d')).rejects.toThrow(InvalidArgumentError)
  })

  test('a view misses no change during a lost connection, and ends with the session', async () => {
    await using proxy = await Proxy.start(server.port)
    await using cut = await ZooKeeper.connect(`127.0.0.1:${proxy.port}`, { sessionTimeout: '4s' })
    const path = place()
    await using view = await new Group(cut, path).watch()
    const own = await new Group(cut, path).join('own')
    const group = new Group(other, path)
    proxy.target = undefined
    proxy.cut()
    await until(() => cut.state === 'suspended')
    const late = await group.join('late')
    expect(names(view.members)).toMatch(/^(own)?$/)
    proxy.target = server.port
    await until(() => view.members.length === 2)
    const loop = (async () => {
      for await (const { members } of view) if (members.length > 2) return
    })()
    proxy.target = undefined
    proxy.cut()
    await expect(loop).rejects.toThrow(SessionExpiredError)
    expect(() => view.members).toThrow(SessionExpiredError)
    await own.leave()
    await until(async () => names(await group.members()) === 'late')
    await late.leave()
  })
})

describe.concurrent('a watched value', () => {
  test('is the data of the node, and reports changes', async () => {
    const path = `/value-${++places}`
    await using value = await WatchedValue.open(one, path)
    expect(value.current).toBeUndefined()
    const seen: (string | undefined)[] = []
    const following = (async () => {
      for await (const now of value) seen.push(now?.data.toString())
    })()
    const now = (): string | undefined => value.current?.data.toString()
    for (const text of ['a', 'b']) {
      await (text === 'a' ? other.create(path, text) : other.setData(path, text))
      await until(() => now() === text)
    }
    await other.create(`${path}/child`)
    await other.delete(`${path}/child`)
    await other.delete(path)
    await until(() => value.current === undefined)
    await value.close()
    await following
    expect(seen).toEqual([undefined, 'a', 'b', undefined])
    expect(() => value.current).toThrow(ClosedError)
  })
})

describe.concurrent('barriers', () => {
  test('all parties wait until a barrier is removed', async () => {
    const path = place()
    const barrier = new Barrier(one, path)
    await barrier.wait()
    await barrier.create()
    await barrier.create()
    const waiting = [barrier.wait(), new Barrier(other, path).wait()]
    const abort = new AbortController()
    const impatient = new Barrier(other, path).wait({ signal: abort.signal })
    expect(await soFar(Promise.race([...waiting, impatient]))).toBe('pending')
    abort.abort(new Error('enough'))
    await expect(impatient).rejects.toThrow(AbortedError)
    await barrier.remove()
    await barrier.remove()
    await Promise.all(waiting)
  })

  test('a double barrier lets all parties begin and end together, round after round', async () => {
    const path = place()
    const inside: number[] = []
    await Promise.all(
      [one, other, one].map(async zk => {
        const barrier = new DoubleBarrier(zk, path, 3)
        for (let number = 0; number < 5; number++) {
          const round = await barrier.enter()
          expect(round.parties).toHaveLength(3)
          inside.push(number)
          await round.leave()
          expect(inside.filter(each => each === number)).toHaveLength(3)
        }
      }),
    )
    expect(inside).toEqual([...inside].sort())
    expect((await one.exists(path))?.numChildren ?? 0).toBe(0)
  })

  test('the others do not wait for a party that gives up, and of too many parties the first ones begin', async () => {
    const path = place()
    const abort = new AbortController()
    const leaver = new DoubleBarrier(one, path, 2).enter({ signal: abort.signal })
    await until(async () => (await one.exists(path))?.numChildren === 1)
    abort.abort()
    await expect(leaver).rejects.toThrow(AbortedError)
    await until(async () => (await one.exists(path))?.numChildren === 0)
    const dying = await ZooKeeper.connect(server.address)
    const dead = new DoubleBarrier(dying, path, 2).enter()
    await until(async () => (await one.exists(path))?.numChildren === 1)
    const ending = expect(dead).rejects.toThrow(ClosedError)
    await dying.close()
    await ending
    const barrier = new DoubleBarrier(one, path, 2)
    const first = barrier.enter()
    await until(async () => (await one.exists(path))?.numChildren === 1)
    const second = new DoubleBarrier(other, path, 2).enter()
    const rounds = await Promise.all([first, second])
    expect(rounds[0].parties).toEqual(rounds.map(({ party }) => party))
    const third = barrier.enter()
    const fourth = barrier.enter()
    expect(await soFar(Promise.race([third, fourth]))).toBe('pending')
    await Promise.all(rounds.map(round => round.leave()))
    await Promise.all([third, fourth].map(async round => (await round).leave()))
    const foreign = `/foreign-${++places}`
    await other.create(foreign, 'something else')
    await expect(new DoubleBarrier(one, foreign, 2).enter()).rejects.toMatchObject({
      code: 'UNEXPECTED_DATA',
    })
    expect((await one.getChildren(foreign)).children).toEqual([])
  })
})

describe.concurrent('a double barrier', () => {
  test('counts a party once, no matter how often it gave up before', async () => {
    const path = place()
    const patient = new AbortController()
    const waiting = new DoubleBarrier(other, path, 3).enter({ signal: patient.signal })
    for (let time = 0; time < 30; time++) {
      const signal = AbortSignal.timeout(1 + (time % 10))
      await expect(new DoubleBarrier(one, path, 3).enter({ signal })).rejects.toThrow(AbortedError)
    }
    expect(await soFar(waiting)).toBe('pending')
    patient.abort()
    await expect(waiting).rejects.toThrow(AbortedError)
    await until(async () => (await one.exists(path))?.numChildren === 0)
  })

  test('can be left by a party that does not wait for the others', async () => {
    const path = place()
    const entering = [one, other].map(zk => new DoubleBarrier(zk, path, 2).enter())
    const [first, second] = (await Promise.all(entering)) as [Round, Round]
    await expect(first.leave({ signal: AbortSignal.abort() })).rejects.toThrow(AbortedError)
    await second.leave()
  })

  test('reports to a party that its node was deleted with the parent', async () => {
    const path = place()
    const entering = expect(new DoubleBarrier(one, path, 2).enter()).rejects.toThrow(NodeDeletedError)
    await until(async () => (await one.exists(path))?.numChildren === 1)
    const [child] = (await other.getChildren(path)).children
    await other.transaction().delete(`${path}/${child!}`).delete(path).commit()
    await entering
  })
})

describe.concurrent('a queue', () => {
  test('gives each message to one consumer, in order', async () => {
    const path = place()
    const queue = new NodeQueue(one, path)
    expect(await queue.tryTake()).toBeUndefined()
    const waiting = queue.take()
    const ids = [await queue.put('0')]
    const first = await waiting
    expect([first.id, first.data.toString()]).toEqual([ids[0], '0'])
    for (let number = 1; number < 20; number++) ids.push(await queue.put(`${number}`))
    const taken: string[] = []
    await Promise.all(
      [one, other].map(async zk => {
        const own = new NodeQueue(zk, path)
        for (let message; (message = await own.tryTake());) {
          taken.push(message.id)
          await message.done()
          await message.done()
        }
      }),
    )
    expect([...taken].sort()).toEqual(ids.slice(1).sort())
    await first.done()
    const more = [await queue.put('a'), await queue.put('b'), await queue.put('c')]
    const inOrder = [await queue.take(), await queue.take(), await queue.take()]
    expect(inOrder.map(({ id }) => id)).toEqual(more)
    await Promise.all(inOrder.map(message => message.done()))
    expect((await one.exists(path))?.numChildren ?? 0).toBe(0)
  })

  test('a message that was not done is taken again, no matter how its consumer ended', async () => {
    const path = place()
    const queue = new NodeQueue(one, path)
    const id = await queue.put('job')
    const dying = await ZooKeeper.connect(server.address)
    const lost = await new NodeQueue(dying, path).take()
    const abort = new AbortController()
    const impatient = queue.take({ signal: abort.signal })
    const waiting = new NodeQueue(other, path).take()
    expect(await soFar(Promise.race([waiting, impatient]))).toBe('pending')
    abort.abort()
    await expect(impatient).rejects.toThrow(AbortedError)
    await dying.close()
    await expect(lost.done()).rejects.toThrow(ClosedError)
    const given = await waiting
    await given.release()
    const again = await queue.take()
    expect([lost.id, given.id, again.id]).toEqual([id, id, id])
    await again.done()
  })

  test('an abort settles at once while no server is connected', async () => {
    await using proxy = await Proxy.start(server.port)
    await using cut = await ZooKeeper.connect(`127.0.0.1:${proxy.port}`)
    proxy.target = undefined
    proxy.cut()
    await until(() => cut.state === 'suspended')
    const path = place()
    const signal = AbortSignal.timeout(10)
    await Promise.all(
      [
        new NodeQueue(cut, path).take({ signal }),
        new Barrier(cut, path).wait({ signal }),
        new DoubleBarrier(cut, path, 2).enter({ signal }),
      ].map(waiting => expect(waiting).rejects.toThrow(AbortedError)),
    )
    expect(cut.state).toBe('suspended')
    proxy.target = server.port
    await cut.sync()
    await until(async () => ((await cut.exists(path))?.numChildren ?? 0) === 0)
  })
})
