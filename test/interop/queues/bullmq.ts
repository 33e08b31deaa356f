import { Queue } from 'bullmq'
import type { Connect } from './client.ts'

export const connect: Connect = url => {
  const queue = new Queue('orders', { connection: { url } })
  return {
    add: jobs => queue.addBulk(jobs.map(data => ({ name: 'order', data }))),
    recover: () => Promise.resolve(),
    unfinished: () => queue.getJobCountByTypes('wait', 'active', 'delayed', 'failed'),
    close: () => queue.close(),
  }
}
