import { randomUUID } from 'node:crypto'
import { connect, isIP } from 'node:net'
import { connect as connectTls } from 'node:tls'
import { parseZooKeeperUrl } from './zookeeper-url.js'
import { systemClock } from '../../clock.js'
import { parseEnsemble } from './client/hosts.js'
import { ZooKeeper } from './client/index.js'
import { shortDuration } from '../../duration.js'
import { clockFact, clockFindings, type ClockFacts } from '../../engine/kit/clock-findings.js'
import type { Diagnosis, Finding } from '../../engine/diagnosis.js'

const LEAST_VERSION = [3, 6] as const
/** Milliseconds. */
const PATIENCE = 3000

/**
 * Looks at the servers of a `zookeeper:` or `zookeeper+tls:` URL.
 * @throws UnavailableError when none can be reached.
 */
export async function diagnoseZooKeeper(url: string): Promise<Diagnosis> {
  const place = parseZooKeeperUrl(url)
  const { ensemble, connect: options } = place
  const isSecure = options.tls !== undefined
  await using client = await ZooKeeper.connect(ensemble, options)
  const servers = await Promise.all(
    parseEnsemble(ensemble).hosts.map(({ host, port }) => lookAtServer(host, port, isSecure)),
  )
  const clock = (await clockOf(client, place.root)) ?? (await clockOf(client, ''))
  return {
    facts: [
      ...servers.flatMap(({ facts }) => facts),
      `${place.name}: ${clock ? `the leader${clockFact(clock)}` : 'no clock could be read'}; ` +
        "whether all is on a disk before it is answered (forceSync, dataLogDir) can't be seen from a client",
    ],
    findings: [
      ...servers.flatMap(({ findings }) => findings),
      ...sessionFindings(options.sessionTimeout, client.sessionTimeout),
      ...(clock
        ? clockFindings(
            clock,
            ['P11'],
            gap =>
              `the leader's clock is ${gap}, and by it ids of transactions are kept and ` +
              'what is deleted is dropped for good',
          )
        : []),
    ],
  }
}

/**
 * The leader's clock, by a node that goes with the session; undefined where this user may make none, or the folder is
 * not there yet.
 */
async function clockOf(client: ZooKeeper, folder: string): Promise<ClockFacts | undefined> {
  const begun = systemClock.now()
  const before = Date.now()
  try {
    const { stat } = await client.create(`${folder}/signalbox-doctor-${randomUUID()}`, '', {
      ephemeral: true,
    })
    const uncertainty = systemClock.now() - begun
    return { ahead: stat.ctime - (before + uncertainty / 2), uncertainty }
  } catch {
    // The trial tells of rights that lack.
    return undefined
  }
}

async function lookAtServer(host: string, port: number, isSecure: boolean): Promise<Diagnosis> {
  const name = `${host}:${port}`
  let answer
  try {
    answer = await say(host, port, isSecure, 'srvr')
  } catch (error) {
    const finding: Finding = {
      id: 'server-down',
      promises: [],
      how: `${name} does not answer (${(error as Error).message}), so fewer others may fail`,
      mend: 'start it, or take it out of the URL',
    }
    return { facts: [], findings: [finding] }
  }
  const [, version, major, minor] = /version: ((\d+)\.(\d+)[.\d]*)/.exec(answer) ?? []
  const mode = /^Mode: (\w+)/m.exec(answer)?.[1]
  if (version === undefined)
    return { facts: [`${name}: can't be looked at: ${answer.trim().slice(0, 80)}`], findings: [] }
  return {
    facts: [`${name}: ZooKeeper ${version}, ${mode ?? 'not serving'}`],
    findings: [...versionFindings(name, version, Number(major), Number(minor)), ...modeFindings(name, mode)],
  }
}

function versionFindings(name: string, version: string, major: number, minor: number): Finding[] {
  const [leastMajor, leastMinor] = LEAST_VERSION
  if (major > leastMajor || (major === leastMajor && minor >= leastMinor)) return []
  return [
    {
      id: 'version',
      promises: ['P5', 'P8'],
      how: `${name} is ZooKeeper ${version}, which lacks what nodes and watches are made of`,
      mend: `use ZooKeeper ${leastMajor}.${leastMinor} or later`,
    },
  ]
}

function modeFindings(name: string, mode: string | undefined): Finding[] {
  if (mode !== 'standalone') return []
  return [
    {
      id: 'single-server',
      promises: ['P2', 'P13'],
      how: `${name} is alone: with its disk all values are lost, and tokens begin anew`,
      mend: 'use an ensemble of three servers or five',
    },
  ]
}

function sessionFindings(wanted: number, agreed: number): Finding[] {
  if (agreed === wanted) return []
  const what =
    agreed > wanted ? 'what a dead process held is free' : 'a process that stands still loses its locks'
  return [
    {
      id: 'session-timeout',
      promises: [agreed > wanted ? 'P9' : 'P3'],
      how:
        `the servers make ${shortDuration(agreed)} of a session time-out of ${shortDuration(wanted)}: ` +
        `so long until ${what}`,
      mend: 'set minSessionTimeout and maxSessionTimeout of the servers, or sessionTimeout in the URL',
    },
  ]
}

/** What a server answers to a word of four letters. */
function say(host: string, port: number, isSecure: boolean, word: string): Promise<string> {
  return new Promise((resolve, reject) => {
    let answer = ''
    // The server hangs up when it has answered; ending our side first would make relays hang up before.
    const ask = (): unknown => socket.write(word)
    const socket = isSecure
      ? connectTls({ host, port, servername: isIP(host) === 0 ? host : '' }, ask)
      : connect(port, host, ask)
    socket.setEncoding('utf8').on('data', (text: string) => (answer += text))
    socket.setTimeout(PATIENCE, () => socket.destroy(new Error(`it says nothing for ${PATIENCE} ms`)))
    socket.on('error', reject).on('close', () => resolve(answer))
  })
}
