/**
 * A scheduler that runs as several processes, one of which works. If the leader dies, the next process leads as soon as
 * ZooKeeper has ended the session of the dead one.
 *
 *     ZOOKEEPER_URL=zookeeper://localhost:2181 node leader.js
 */
import { setTimeout as sleep } from 'node:timers/promises'
import { open } from 'signalbox'

const { ZOOKEEPER_URL = 'zookeeper://localhost:2181' } = process.env

await using box = await open(ZOOKEEPER_URL, { label: `scheduler ${process.pid}`, wait: '30s' })
const election = box.election('scheduler')

const stop = new AbortController()
process.once('SIGTERM', () => stop.abort())

try {
  await election.lead(
    async grant => {
      console.log(`${process.pid} leads, term ${grant.token}`)
      // The sleep ends if the process loses the lead, or if the program stops.
      const signal = AbortSignal.any([grant.signal, stop.signal])
      for (let round = 1; ; round++) {
        console.log(`${process.pid} does round ${round}`)
        await sleep(100, undefined, { signal })
      }
    },
    // A process that lost the lead becomes a candidate again.
    { again: true, signal: stop.signal },
  )
} catch (error) {
  if (!stop.signal.aborted) throw error
  console.log(`${process.pid} stops`)
}
