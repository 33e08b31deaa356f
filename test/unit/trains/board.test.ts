import { afterEach, describe, expect, onTestFinished, test } from 'vitest'
import { Network } from '../../../apps/trains/board/network.js'
import { Board } from '../../../apps/trains/board/board.js'
import type { AboutFrame, Frame } from '../../../apps/trains/board/frames.js'
import { PageServer } from '../../../apps/trains/board/page-server.js'
import { Waits } from '../../../apps/trains/board/waits.js'
import { Scene } from '../../../apps/trains/board/scene.js'
import type { Geography, Place } from '../../../apps/trains/input/source.js'
import type { LockInUse, LockUser } from '../../../apps/trains/lock-in-use.js'
import type { Message } from '../../../apps/trains/messages/message.js'

/**
 * Returns stations on a line to the north, a degree apart, with a platform for each direction: `A1` and `A2` are at
 * `A`.
 */
function lineOf(patterns: readonly string[], placed = 'ABCDE'): Geography {
  return {
    patterns: patterns.map(pattern => pattern.split(' ')),
    stationOf: location => location[0]!,
    placeOf(location): Place | undefined {
      const north = placed.indexOf(location[0]!)
      return north < 0 ? undefined : { latitude: 40 + north, longitude: 10 }
    },
  }
}

function networkOf(patterns: readonly string[], placed?: string): Network {
  const names = new Map([...'ABCDE'].map(id => [id, `Station ${id}`]))
  return new Network(names, lineOf(patterns, placed))
}

/** Returns the tracks, each by the names of its stations. */
function tracks(network: Network): string[] {
  const { stations, tracks } = network.diagram()
  const letter = (station: number): string => stations[station]!.name.at(-1)!
  return tracks.map(track => track.map(letter).sort().join('')).sort()
}

describe('the network', () => {
  test('has one station for all locations that belong to it', () => {
    const network = networkOf(['A1 B1 C1', 'C2 B2 A2'])
    expect(network.diagram().stations.map(({ name }) => name)).toHaveLength(3)
    expect(network.stationOf('A1')).toBe(network.stationOf('A2'))
    expect(tracks(network)).toEqual(['AB', 'BC'])
  })

  test('has no track of its own for trains that pass stations without a stop', () => {
    expect(tracks(networkOf(['A1 B1 C1 D1', 'A1 D1']))).toEqual(['AB', 'BC', 'CD'])
  })

  test('is a circle if no places are known, and grows when trains use new tracks', () => {
    const network = new Network(new Map(), undefined)
    const [one, other] = [network.stationOf('north')!, network.stationOf('south')!]
    const before = network.changes
    network.passed(one, other)
    network.passed(other, one)
    expect(network.changes).toBe(before + 1)
    const { stations, tracks } = network.diagram()
    expect(stations.map(({ name }) => name)).toEqual(['north', 'south'])
    expect(tracks).toEqual([[0, 1]])
    for (const { x, y } of stations) expect(Number.isFinite(x + y)).toBe(true)
  })
})

/** Settles the messages of a train in the order in which they are applied. */
function settle(scene: Scene, train: string, ...steps: readonly string[]): void {
  for (const [index, step] of steps.entries()) {
    const about = { id: `${train}:${index}`, train }
    if (step === 'gone') scene.settle({ ...about, type: 'delete' } as Message, 'deleted')
    else if (index === 0) scene.settle({ ...about, type: 'create', location: step } as Message, 'created')
    else scene.settle({ ...about, type: 'move', to: step } as Message, 'moved')
  }
}

describe('the scene', () => {
  test('reports the stations of each train since the last frame', () => {
    const network = networkOf(['A1 B1 C1'])
    const scene = new Scene(network)
    const [a, b, c] = ['A1', 'B1', 'C1'].map(location => network.stationOf(location))
    settle(scene, 'one', 'A1', 'B1')
    expect(scene.frame()).toEqual([{ train: 1, stations: [a, b], isGone: false }])
    expect(scene.frame()).toEqual([])
    scene.settle({ id: '3', train: 'one', type: 'move', to: 'C1' } as Message, 'moved')
    expect(scene.standing()).toEqual([{ train: 1, stations: [c], isGone: false }])
    scene.settle({ id: '4', train: 'one', type: 'delete' } as Message, 'deleted')
    expect(scene.frame()).toEqual([{ train: 1, stations: [b, c], isGone: true }])
    expect(scene.standing()).toEqual([])
    expect(scene.running).toBe(0)
  })

  test('counts changes, also those that a dead worker had committed, and no ignored messages', () => {
    const scene = new Scene(networkOf(['A1 B1']))
    settle(scene, 'one', 'A1')
    const move = { id: '2', train: 'one', type: 'move', to: 'B1' } as Message
    scene.settle(move, 'already applied')
    scene.settle({ ...move, id: '3' }, 'ignored')
    scene.settle({ ...move, id: '4', train: 'none' }, 'dead-lettered')
    scene.settle({ id: '5', train: 'one', type: 'delete' } as Message, 'deleted')
    expect(Object.fromEntries(scene.counts)).toMatchObject({
      A1: { created: 1, departed: 1, arrived: 0, deleted: 0 },
      B1: { created: 0, departed: 0, arrived: 1, deleted: 1 },
    })
  })
})

describe('the waits', () => {
  const user = (train: string, worker = 1) => ({ who: `worker ${worker}`, train, age: 100 })
  const named = (waits: Waits): string[] =>
    waits.listed.map(({ waiter, holder, station }) => `${waiter.train} for ${holder.train} at ${station}`)
  const lock = (location: string, holder: string | undefined, ...waiters: string[]): LockInUse => ({
    location,
    holders: holder === undefined ? [] : [user(holder)],
    waiters: waiters.map(train => user(train, 2)),
  })

  test('are listed where somebody else holds the lock, the newest first, and stay when they have ended', () => {
    const waits = new Waits()
    const nameOf = (location: string): string => `Station ${location}`
    waits.take([lock('A', undefined, 'one'), lock('B', 'two', 'one')], nameOf)
    expect(named(waits)).toEqual(['one for two at Station B'])
    expect(waits.trains).toEqual(['one'])
    waits.take([lock('B', 'two', 'one'), lock('C', 'four', 'three')], nameOf)
    expect(named(waits)).toEqual(['three for four at Station C', 'one for two at Station B'])
    waits.take([lock('C', 'four', 'three')], nameOf)
    expect(named(waits)).toEqual(['three for four at Station C', 'one for two at Station B'])
    waits.take([], nameOf)
    expect(waits.trains).toEqual([])
    for (let train = 0; train < 20; train++) waits.take([lock('A', 'two', String(train))], nameOf)
    expect(named(waits)).toHaveLength(8)
    expect(named(waits)[0]).toBe('19 for two at Station A')
  })
})

describe('the board', () => {
  test('counts the messages of a resumed run as no speed, and trains that wait but are not drawn', async () => {
    const user = (train: string): LockUser => ({ who: 'worker 1', train, age: 1 })
    const locks = [{ location: 'A', holders: [user('one')], waiters: [user('other')] }]
    const board = await Board.open(0, {
      source: {
        name: 'messages',
        description: 'messages',
        total: undefined,
        days: undefined,
        locationNames: new Map(),
        geography: undefined,
        async *batches() {},
      },
      settings: {
        processes: 1,
        input: { kind: 'messages', path: '-' },
        dwell: 250,
        use: 'alone',
      },
      locks: () => Promise.resolve(locks),
    })
    onTestFinished(() => board.close())
    const answer = await fetch(new URL('events', board.url))
    await board.viewed()
    const done = { messages: 1_000_000, time: null, kills: 0, redelivered: 0, alreadyApplied: 0, workers: [] }
    board.begin(() => done)
    const seen: Frame[] = []
    for await (const text of answer.body!.pipeThrough(new TextDecoderStream())) {
      for (const [, json] of text.matchAll(/^data: (.+)$/gm)) seen.push(JSON.parse(json!) as Frame)
      const last = seen.at(-1)
      if (last?.kind === 'now' && last.allWaiting > 0) break
    }
    expect(seen.at(-1)).toMatchObject({ waiting: [], allWaiting: 1 })
    for (const frame of seen) if (frame.kind === 'now') expect(frame.perSecond).toBe(0)
  })
})

describe('the server of the page', () => {
  const open: PageServer[] = []
  afterEach(() => {
    return Promise.all(open.splice(0).map(server => server.close()))
  })
  const first: AboutFrame = {
    kind: 'about',
    title: 'first',
    processes: 4,
    speed: null,
    dwell: 0,
    isLocked: true,
    diagram: { stations: [], tracks: [], left: 0 },
  }
  async function serve(port = 0, frame = first): Promise<PageServer> {
    const server = await PageServer.open(port, () => [frame])
    open.push(server)
    return server
  }

  test('serves the files of the page, below 100 kB, and lets it load nothing else', async () => {
    const { url } = await serve()
    const page = await fetch(url)
    expect(page.headers.get('content-security-policy')).toMatch(/^default-src 'none'; script-src 'self';/)
    let size = 0
    const seen = new Set<string>()
    const load = async (path: string): Promise<void> => {
      if (seen.has(path)) return
      seen.add(path)
      const answer = await fetch(new URL(path, url))
      expect(answer.status).toBe(200)
      const text = await answer.text()
      size += text.length
      for (const [, found] of text.matchAll(/(?:href|src|from)[= ]["'](?!data:)([^"']+)["']/g))
        await load(found!)
    }
    await load('')
    expect([...seen]).toEqual(expect.arrayContaining(['page.css', 'page.js']))
    expect(size).toBeLessThan(100_000)
  })

  test('closes although a page does not read', async () => {
    const server = await serve(0, { ...first, title: 'x'.repeat(32 << 20) })
    const page = await fetch(new URL('events', server.url))
    await server.close()
    await expect(page.arrayBuffer()).rejects.toThrow()
  })
})
