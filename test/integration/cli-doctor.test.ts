import { chmodSync, existsSync, mkdirSync, statfsSync } from 'node:fs'
import { rm } from 'node:fs/promises'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { freePort } from '../../apps/chaos/servers/free-port.js'
import { open } from '../../src/index.js'
import { until } from '../../packages/conformance/src/time.js'
import { ZooKeeper } from 'signalbox-zookeeper'
import { RedisPlace, through } from '../support/redis/place.js'
import { smallDisk } from '../support/file/small-disk.js'
import { FakeClock } from '../support/servers/fake-clock.js'
import { startHazelcast, startHazelcastCluster, TEST_CLUSTER } from '../support/servers/hazelcast.js'
import { startRedis, startRedisServers, type RedisServerOptions } from '../support/servers/redis.js'
import { startRedisCluster } from '../support/servers/redis-cluster.js'
import { startRedisWithSentinel } from '../support/servers/redis-sentinel.js'
import { replacingRelay } from '../support/servers/replacing-relay.js'
import { startZooKeeper } from '../support/servers/zookeeper.js'
import { startZooKeeperEnsemble } from '../support/servers/zookeeper-ensemble.js'
import { CommandPlace, program, type End } from './command-line.js'

/** Redis settings that weaken no promise. */
const SAFE = ['appendonly yes', 'appendfsync always']

/** Returns the findings of the doctor, by name, and checks its status. */
async function found(url: string): Promise<Found> {
  await using place = new CommandPlace(url)
  return read(await place.signalbox('doctor', '--json'))
}

interface Found {
  readonly ids: string[]
  readonly facts: string[]
  readonly findings: readonly { readonly id: string; readonly how: string; readonly fix: string }[]
}

function read({ status, stdout, stderr }: End): Found {
  expect(stderr).toBe('')
  const { facts, findings } = JSON.parse(stdout) as Pick<Found, 'facts' | 'findings'>
  expect(status).toBe(findings.length > 0 ? 1 : 0)
  return { ids: findings.map(({ id }) => id), facts, findings }
}

/** Runs the doctor on a machine whose clock is an hour ahead. */
async function atAnotherTime(url: string): Promise<End> {
  const clock = new FakeClock()
  clock.set(3_600_000)
  await using place = new CommandPlace(url)
  const set = Object.entries(clock.environment).map(([name, value]) => `${name}=${value}`)
  return await place.program('env', ...set, process.execPath, program, 'doctor', '--json').ended
}

describe.concurrent('doctor of Redis', () => {
  test.each<[string, RedisServerOptions, string[]]>([
    ['a server that keeps all', { config: SAFE }, []],
    ['without persistence', {}, ['no-persistence']],
    ['with snapshots only, as a server is by default', { config: ['save 3600 1'] }, ['snapshots-only']],
    ['that writes late', { config: ['appendonly yes', 'appendfsync everysec'] }, ['late-fsync']],
    ['that evicts', { config: [...SAFE, 'maxmemory 100mb', 'maxmemory-policy volatile-lru'] }, ['eviction']],
    ['that would evict without a limit', { config: [...SAFE, 'maxmemory-policy allkeys-lru'] }, []],
  ])('finds what is wrong with %s', async (_, options, expected) => {
    await using server = await startRedis(options)
    expect((await found(server.url)).ids).toEqual(expected)
    expect(await server.command('KEYS', '*')).toEqual(
      expect.not.arrayContaining([expect.stringMatching(/trial/)]),
    )
  })

  test('finds unawaited replicas, missing replicas, and a server that is a replica', async () => {
    await using master = await startRedis({ config: SAFE })
    const config = [...SAFE, `replicaof 127.0.0.1 ${master.port}`]
    await using replica = await startRedis({ config })
    await using _another = await startRedis({ config })
    await until('both have copied', async () =>
      /state=online.*state=online/s.test(String(await master.command('INFO', 'replication'))),
    )
    const [none, one, both, three, wrong] = await Promise.all([
      found(master.url),
      // Fewer replicas are awaited than may become master.
      found(`${master.url}?minReplicas=1`),
      found(`${master.url}?minReplicas=2`),
      found(`${master.url}?minReplicas=3`),
      found(replica.url),
    ])
    expect(none.ids).toEqual(['asynchronous-replicas'])
    for (const { findings } of [none, one])
      expect(findings).toMatchObject([{ fix: expect.stringContaining('minReplicas=2') as string }])
    expect(both.ids).toEqual([])
    expect(three.ids).toContain('too-few-replicas')
    expect(wrong.ids).toContain('replica')
  })

  test('finds missing rights, and names what it could not examine', async () => {
    await using server = await startRedis({ config: SAFE })
    await server.command(...'ACL SETUSER reader on >secret ~* &* -@all +get +ping +time'.split(' '))
    const { ids, facts } = await found(server.url.replace('//', '//reader:secret@'))
    expect(ids).toEqual(expect.arrayContaining(['no-locks', 'no-stores', 'no-limits']))
    expect(facts.join('\n')).toMatch(/could not be examined: INFO/)
    expect(facts.join('\n')).not.toContain('secret')
  })

  test('finds a clock that is wrong', async () => {
    const clock = new FakeClock()
    clock.set(3_600_000)
    await using server = await startRedis({ config: SAFE, clock })
    expect((await found(server.url)).ids).toEqual(['clock'])
  })

  test('finds a server that is far away', async () => {
    await using here = await RedisPlace.start({ config: SAFE })
    const network = await here.network()
    network.delay = 60
    expect((await found(through(network))).ids).toContain('slow')
  })

  test('finds an old version', async () => {
    await using server = await startRedis({ config: SAFE })
    const port = await replacingRelay(server.port, 'redis_version:7', 'redis_version:6')
    expect((await found(`redis://127.0.0.1:${port}`)).ids).toEqual(['version'])
  })

  test('looks at each server of a quorum, and finds the one that is down', async () => {
    const servers = await startRedisServers(3, { config: SAFE })
    const url = `redis-quorum://${servers.map(({ port }) => `127.0.0.1:${port}`).join(',')}`
    expect((await found(url)).ids).toEqual([])
    await servers[2]!.kill()
    expect((await found(url)).ids).toEqual(['server-down'])
    await Promise.all(servers.map(server => server.kill()))
    await using place = new CommandPlace(url)
    expect(await place.signalbox('doctor')).toMatchObject({ status: 69, stdout: '' })
  })

  test('names the servers that a finding is about, where they differ', async () => {
    const servers = await startRedisServers(3, { config: SAFE })
    await servers[1]!.command('CONFIG', 'SET', 'appendfsync', 'no')
    await servers[2]!.command('CONFIG', 'SET', 'appendfsync', 'no')
    const names = servers.map(({ port }) => `127.0.0.1:${port}`)
    const quorum = await found(`redis-quorum://${names.join(',')}`)
    expect(quorum.ids).toEqual(['late-fsync'])
    expect(quorum.findings[0]!.how).toMatch(`redis://${names[1]!}, redis://${names[2]!}: appendfsync is no`)

    await using cluster = await startRedisCluster({ config: SAFE })
    const well = await found(cluster.url)
    expect(well.ids).toEqual([])
    for (const { port } of cluster.masters)
      expect(well.facts.filter(fact => fact.startsWith(`127.0.0.1:${port}: Redis`))).toHaveLength(1)
    const [first, , last] = cluster.masters
    const node = await found(`redis://127.0.0.1:${first!.port}`)
    expect(node.ids).toEqual(['cluster-node'])
    expect(node.findings[0]!.fix).toBe(`open redis+cluster://127.0.0.1:${first!.port}`)
    await first!.command('CONFIG', 'SET', 'appendonly', 'no')
    await last!.command('CONFIG', 'SET', 'appendfsync', 'everysec')
    const { findings } = await found(cluster.url)
    expect(Object.fromEntries(findings.map(({ id, how }) => [id, /^[^ ]+(?=: )/.exec(how)?.[0]]))).toEqual({
      'no-persistence': `127.0.0.1:${first!.port}`,
      'late-fsync': `127.0.0.1:${last!.port}`,
    })
  })

  test('examines the master that Sentinels name', async () => {
    await using servers = await startRedisWithSentinel()
    for (const server of [servers.master, servers.replica]) {
      await server.command('CONFIG', 'SET', 'appendonly', 'yes')
      await server.command('CONFIG', 'SET', 'appendfsync', 'always')
    }
    expect((await found(servers.url)).ids).toEqual(['asynchronous-replicas'])
    expect((await found(`${servers.url}?minReplicas=1`)).ids).toEqual([])
  })

  test('takes no lock that another doctor may hold', async () => {
    await using server = await startRedis({ config: SAFE })
    await using box = await open(server.url)
    await using _grant = await box.mutex('signalbox-doctor').acquire()
    const both = await Promise.all([found(server.url), found(server.url)])
    expect(both.map(({ ids }) => ids)).toEqual([[], []])
  })

  test("distinguishes another program's data from a server that refuses", async () => {
    await using server = await startRedis({ config: SAFE })
    await using box = await open(server.url)
    await box.limiter('signalbox-doctor', { limit: 1000, per: '1s' }).acquire()
    const [name] = (await server.command('KEYS', '*signalbox-doctor')) as string[]
    await server.command('DEL', name!)
    await server.command('RPUSH', name!, 'spoiled')
    const { ids, findings } = await found(server.url)
    expect(ids).toEqual(['no-limits'])
    expect(findings[0]!.fix).toMatch(/^delete what another program wrote there/)
  })

  test('names the weakened promise and the remedy in plain text', async () => {
    await using server = await startRedis()
    await using place = new CommandPlace(server.url)
    const { status, stdout } = await place.signalbox('doctor')
    expect(status).toBe(1)
    expect(stdout).toMatch(/^redis:.*: Redis \d+\..*\n/)
    expect(stdout).toMatch(
      /\n {2}weakens P1, mutual exclusion; P13, commits are atomic and durable\n {2}fix: set appendonly yes/,
    )
  })
})

describe('doctor of files', () => {
  test('finds what is wrong with a folder', async () => {
    await using place = new CommandPlace()
    await place.box('maker')
    const doctor = async (url: string): Promise<string[]> =>
      read(await place.signalbox('doctor', '--json', '--engine', url)).ids
    // The doctor also reports that temporary files are in memory, if they are.
    const memory = statfsSync(place.folder).type === 0x01021994 ? ['in-memory'] : []
    expect(await doctor(place.url)).toEqual(memory)
    expect(await doctor(`${place.url}?durable=false`)).toEqual(['not-durable', ...memory])
    chmodSync(join(place.folder, 'locks'), 0o777)
    expect(await doctor(place.url)).toEqual([...memory, 'untrusted-folder', 'no-entry'])
    expect(await place.signalbox('doctor', '--engine', 'file:./nowhere')).toMatchObject({
      status: 1,
      stdout: '',
    })
  })

  test.runIf(existsSync('/dev/shm'))('finds a folder in memory', async () => {
    const folder = `/dev/shm/signalbox-${process.pid}`
    mkdirSync(folder)
    try {
      await (await open(`file:${folder}`)).close()
      expect((await found(`file:${folder}`)).ids).toContain('in-memory')
    } finally {
      await rm(folder, { recursive: true })
    }
  })

  test('finds a disk that is almost full', async () => {
    const disk = await smallDisk('16m')
    await using place = new CommandPlace(`file:${disk.folder}/locks`)
    const [enter = '', ...argv] = disk.enter
    const script = '"$NODE" "$SIGNALBOX" run --lock a -- true && exec "$NODE" "$SIGNALBOX" doctor --json'
    const end = await place.program(enter, ...argv, 'sh', '-c', script).ended
    expect(read(end).ids).toEqual(['in-memory', 'disk-full'])
  })
})

test('doctor of ZooKeeper finds a lone server, shortened sessions, missing rights, and more', async () => {
  const server = await startZooKeeper({ config: ['maxSessionTimeout=4000'] })
  await using _end = server
  const alone = `zookeeper://${server.address}`
  const older = await replacingRelay(server.port, 'version: 3.9', 'version: 3.5')
  {
    await using client = await ZooKeeper.connect(server.address)
    await client.create('/closed', '', { acl: [{ permissions: 1, scheme: 'world', id: 'anyone' }] })
  }
  const [plain, fitting, old, down, closed] = await Promise.all([
    found(alone),
    found(`${alone}/app?sessionTimeout=4s`),
    found(`zookeeper://127.0.0.1:${older}/app?sessionTimeout=4s`),
    found(`zookeeper://${server.address},127.0.0.1:1/app?sessionTimeout=4s`),
    found(`${alone}/closed?sessionTimeout=4s`),
  ])
  // Every server outside an ensemble has this finding.
  expect(fitting.ids).toEqual(['single-server'])
  expect(plain.ids).toEqual(['single-server', 'session-timeout'])
  expect(old.ids).toEqual(['version', 'single-server'])
  expect(down.ids).toEqual(['single-server', 'server-down'])
  expect(closed.ids).toEqual(['single-server', 'no-entry'])
})

test('doctor of ZooKeeper finds nothing wrong with a healthy ensemble, and finds a wrong clock', async () => {
  await using ensemble = await startZooKeeperEnsemble()
  const url = `zookeeper://${ensemble.servers.map(({ address }) => address).join(',')}/app`
  const well = await found(url)
  expect(well.ids).toEqual([])
  expect(well.facts.filter(fact => /: ZooKeeper \d.*, (leader|follower)$/.test(fact))).toHaveLength(3)
  expect(well.facts.join('\n')).toMatch(/the leader, clock \d+ms (ahead|behind); .*forceSync.* can't be seen/)
  expect(read(await atAnotherTime(url)).ids).toEqual(['clock'])
})

describe('doctor of Hazelcast', () => {
  test('finds map settings that lose data, and nothing wrong with a healthy cluster', async () => {
    const map = (name: string, settings: string): string => `<map name="${name}*">${settings}</map>`
    const evict = (policy: string): string =>
      `<eviction eviction-policy="${policy}" max-size-policy="PER_NODE" size="10000"/>`
    const more = [
      map('none', '<backup-count>0</backup-count>'),
      map('late', '<backup-count>0</backup-count><async-backup-count>1</async-backup-count>'),
      map('ttl', '<time-to-live-seconds>600</time-to-live-seconds>'),
      map('idle', '<max-idle-seconds>600</max-idle-seconds>'),
      map('lru', evict('LRU')),
      map('lfu', evict('LFU')),
      map('counted', '<per-entry-stats-enabled>true</per-entry-stats-enabled>'),
      map('guarded', '<split-brain-protection-ref>three</split-brain-protection-ref>'),
      `<split-brain-protection name="three" enabled="true"><minimum-cluster-size>3</minimum-cluster-size></split-brain-protection>`,
    ]
    const members = await startHazelcastCluster(2, { more: more.join('') })
    try {
      const url = `hazelcast://${members[0]!.address}/${TEST_CLUSTER}`
      const expected = {
        none: ['no-backup'],
        late: ['no-backup'],
        ttl: ['expiring'],
        idle: ['expiring'],
        lru: ['eviction'],
        lfu: ['eviction'],
        counted: [],
        guarded: ['no-entry'],
        signalbox: [],
      }
      const seen = Object.keys(expected).map(async name => [name, (await found(`${url}?map=${name}`)).ids])
      expect(Object.fromEntries(await Promise.all(seen))).toEqual(expected)
      expect(read(await atAnotherTime(url)).ids).toEqual(['clock'])
    } finally {
      await Promise.all(members.map(member => member.kill()))
    }
  })

  test('finds a lone member, an old member, and a missing member', async () => {
    const port = await freePort()
    await using server = await startHazelcast({ publicPort: port })
    await replacingRelay(server.port, '\x05\x07\x00', '\x04\x02\x00', port)
    const url = `hazelcast://127.0.0.1:${port}`
    expect((await found(`${url}/${TEST_CLUSTER}`)).ids).toEqual(['version', 'single-member'])
    await using place = new CommandPlace(`${url}/another`)
    const { status, stdout, stderr } = await place.signalbox('doctor')
    expect({ status, stdout }).toEqual({ status: 69, stdout: '' })
    expect(stderr).toMatch(/address or the name of the cluster may be wrong/)
  })
})
