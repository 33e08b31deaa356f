import { expect, test, vi } from 'vitest'
import { startEngine, type ServedEngine } from '../support/servers/engines.js'
import { startRedis } from '../support/servers/redis.js'
import { CommandPlace, PATIENCE } from './command-line.js'

test.each<ServedEngine>(['Redis', 'PostgreSQL', 'ZooKeeper', 'Hazelcast'])(
  'a fleet on %s runs one at a time',
  async engine => {
    await using place = new CommandPlace(await startEngine(engine))
    // mkdir fails if two copies run at the same time.
    const script = 'mkdir busy && sleep 0.3 && echo "$SIGNALBOX_TOKEN" >> log && rmdir busy'
    const job = ['--lock', 'a', '--lock', 'b', '--', 'sh', '-c', script]
    const ends = await Promise.all([place.signalbox('run', ...job), place.signalbox('run', ...job)])
    expect(ends).toEqual(ends.map(() => ({ status: 0, stdout: '', stderr: '' })))
    const [first, second] = place.lines('log').map(BigInt)
    expect(second).toBeGreaterThan(first!)
  },
)

test('a command keeps its lock for the minimum time, so that a machine with a late clock finds it busy', async () => {
  await using place = new CommandPlace()
  const script = ['--', 'sh', '-c', 'echo ran >> log']
  const job = ['run', '--json', '--lock', 'quick', '--skip-if-busy', '--hold-at-least', '1h', ...script]
  const first = place.start(...job)
  await vi.waitFor(() => expect(first.stderr).toContain('"ended"'), PATIENCE)
  expect((await place.signalbox(...job)).stderr).toBe('{"event":"skipped","reason":"busy"}\n')
  first.kill('SIGTERM')
  expect((await first.ended).status).toBe(0)
  expect(place.lines('log')).toEqual(['ran'])
})

test('a server that dies ends a term, and the next term begins when it is back', async () => {
  await using server = await startRedis()
  await using place = new CommandPlace(server.url)
  const script = `trap "echo told >> log; exit 3" TERM; echo "up $SIGNALBOX_TOKEN" >> log
    for turn in $(seq 1000); do sleep 0.05; done`
  const leading = place.start('lead', 'job', '--lease', '1s', '--', 'sh', '-c', script)
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
