/**
 * Executes one action on the jobs of a queue. It is a process of its own, because its package needs a newer Node than
 * the tests.
 *
 *     node client.ts bullmq redis://localhost:6379 add '[{"customer":"anna","order":1}]'
 */
import { argv } from 'node:process'

/** A job. */
export interface Order {
  readonly customer: string
  readonly order: number
}

/** A client of a queue. */
export interface QueueClient {
  add(jobs: readonly Order[]): Promise<unknown>
  /** Requeues the jobs of dead workers, unless the queue soon does so itself. */
  recover(): Promise<unknown>
  /** Returns the number of unfinished jobs. */
  unfinished(): Promise<number>
  close(): Promise<unknown>
}

/** Connects a client to a server. */
export type Connect = (url: string) => QueueClient | Promise<QueueClient>

const [, , name, url, action, jobs = '[]'] = argv
const { connect } = (await import(`./${name}.ts`)) as { connect: Connect }
const client = await connect(url!)
if (action === 'add') await client.add(JSON.parse(jobs) as Order[])
if (action === 'recover') await client.recover()
if (action === 'unfinished') console.log(await client.unfinished())
await client.close()
