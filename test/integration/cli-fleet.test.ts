import { expect, test, vi } from 'vitest'
import { startEngine, type ServedEngine } from '../support/servers/engines.js'
import { startRedis } from '../support/servers/redis.js'
import { CommandPlace, PATIENCE } from './command-line.js'

test.each<ServedEngine>(['Redis', 'PostgreSQL', 'ZooKeeper', 'Hazelcast'])(
  'a fleet on %s runs one at a time, and as one leader',
  async engine => {
    const url = await startEngine(engine)
    await Promise.all([oneAtATime(url), oneLeader(url)])
  },
)

test('a command on PostgreSQL keeps its lock for the minimum time', async () => {
  await heldAtLeast(await startEngine('PostgreSQL'))
})

async function oneAtATime(url: string): Promise<void> {
  await using place = new CommandPlace(url)
  // mkdir fails if two copies run at the same time.
  const script = 'mkdir busy && sleep 0.3 && echo "$SIGNALBOX_TOKEN" >> log && rmdir busy'
  const job = ['--lock', 'a', '--lock', 'b', '--', 'sh', '-c', script]
  const ends = await Promise.all([place.signalbox('run', ...job), place.signalbox('run', ...job)])
  expect(ends).toEqual(ends.map(() => ({ status: 0, stdout: '', stderr: '' })))
  const [first, second] = place.lines('log').map(BigInt)
  expect(second).toBeGreaterThan(first!)
}

async function heldAtLeast(url: string): Promise<void> {
  await using place = new CommandPlace(url)
  const script = ['--', 'sh', '-c', 'echo ran >> log']
  const job = ['run', '--json', '--lock', 'quick', '--skip-if-busy', '--hold-at-least', '1h', ...script]
  const first = place.start(...job)
  await vi.waitFor(() => expect(first.stderr).toContain('"ended"'), PATIENCE)
  expect((await place.signalbox(...job)).stderr).toBe('{"event":"skipped","reason":"busy"}\n')
  first.kill('SIGTERM')
  expect((await first.ended).status).toBe(0)
  expect(place.lines('log')).toEqual(['ran'])
}

async function oneLeader(url: string): Promise<void> {
  await using place = new CommandPlace(url)
  const script = 'echo "$SIGNALBOX_TOKEN $PPID" >> log; exec sleep 60'
  const fleet = [1, 2].map(() => place.start('lead', 'scheduler', '--', 'sh', '-c', script))
  const terms: (readonly [token: bigint, leader: number])[] = []
  for (const term of [1, 2]) {
    const lines = await place.linesCome('log', term)
    expect(lines).toHaveLength(term)
    const [token, leader] = lines.at(-1)!.split(' ')
    terms.push([BigInt(token!), Number(leader)])
    const leading = fleet.find(({ pid }) => pid === Number(leader))!
    leading.kill('SIGTERM')
    expect((await leading.ended).status).toBe(143)
  }
  expect(terms[1]![0]).toBeGreaterThan(terms[0]![0])
  expect(terms[1]![1]).not.toBe(terms[0]![1])
}

/** Returns a command that prints a line when it gets SIGTERM, and then runs `afterwards`. */
function commandThat(afterwards: string): readonly string[] {
  const script = `trap "echo told >> log; ${afterwards}" TERM; echo "up $SIGNALBOX_TOKEN" >> log`
  return ['--', 'sh', '-c', `${script}; for turn in $(seq 1000); do sleep 0.05; done`]
}

test('a server that dies ends a term, and the next term begins when it is back', async () => {
  await using server = await startRedis()
  await using place = new CommandPlace(server.url)
  const leading = place.start('lead', 'job', '--lease', '1s', ...commandThat('exit 3'))
  await place.linesCome('log', 1)
  await server.kill()
  await place.linesCome('log', 2)
  await server.start()
  const lines = await place.linesCome('log', 3)
  expect(lines.map(line => line.split(' ')[0])).toEqual(['up', 'told', 'up'])
  const [first, , second] = lines.map(line => BigInt(line.split(' ')[1] ?? 0))
  expect(second).toBeGreaterThan(first!)
  leading.kill('SIGTERM')
  expect((await leading.ended).status).toBe(3)
})
