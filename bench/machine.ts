import { availableParallelism, cpus, loadavg, release, totalmem, type } from 'node:os'
import { statfs } from 'node:fs/promises'
import { versionOf } from './package.js'

/** The machine that the figures come from. */
export interface Machine {
  readonly cpu: string
  readonly cores: number
  /** Size of the memory, in GiB. */
  readonly memory: number
  readonly system: string
  /** File system of the folder that the file engine worked in. */
  readonly fileSystem: string
  readonly node: string
  /** Load average of the last minute before the start. Shows whether the machine was quiet. */
  readonly load: number
  /** Versions of this package and of those that it is compared with. */
  readonly versions: Readonly<Record<string, string>>
}

/** The peers of each part. */
const PEERS: Readonly<Record<string, readonly string[]>> = {
  memory: ['async-mutex'],
  file: ['proper-lockfile', 'live-mutex'],
  lockfile: ['proper-lockfile'],
  trains: ['redis-semaphore', 'hazelcast-client'],
  redis: ['ioredis', 'redis', 'redlock', 'redis-semaphore', '@verrou/core', 'Redisson'],
  postgres: ['pg', 'rate-limiter-flexible'],
  zookeeper: ['node-zookeeper-client', 'zookeeper', 'Curator', 'kazoo'],
  hazelcast: ['hazelcast-client'],
  'growth-files': ['proper-lockfile'],
  'growth-redis': ['ioredis', 'redlock', 'Redisson'],
  'growth-postgres': ['pg'],
  'growth-zookeeper': ['Curator'],
  'growth-hazelcast': ['hazelcast-client'],
  limits: ['limiter', 'rate-limiter-flexible', 'bottleneck', 'ioredis'],
}

/** The numbers by which Linux distinguishes file systems. */
const FILE_SYSTEMS: Readonly<Record<number, string>> = {
  0xef53: 'ext4',
  0x58465342: 'xfs',
  0x9123683e: 'btrfs',
  0x794c7630: 'overlay',
  0x01021994: 'tmpfs',
}

/** Describes this machine. @param folder that the file engine works in. */
export async function thisMachine(folder: string): Promise<Omit<Machine, 'versions'>> {
  const kind = (await statfs(folder)).type
  return {
    cpu: cpus()[0]?.model.trim() ?? 'unknown',
    cores: availableParallelism(),
    memory: Math.round(totalmem() / 2 ** 30),
    system: `${type()} ${release()}`,
    fileSystem: FILE_SYSTEMS[kind] ?? `0x${kind.toString(16)}`,
    node: process.versions.node,
    load: Math.round(loadavg()[0]! * 100) / 100,
  }
}

/** Returns the versions of this package and of its peers in these parts. */
export function versionsOf(parts: readonly string[]): Machine['versions'] {
  const peers = new Set(parts.flatMap(part => PEERS[part] ?? []))
  return Object.fromEntries(['signalbox', ...peers].map(name => [name, versionOf(name)]))
}
