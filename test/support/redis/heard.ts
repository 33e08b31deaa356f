import type { LinkListener } from '../../../src/engines/redis/clients/redis-link.js'

/** Records the reports of a link. */
export class Heard implements LinkListener {
  /** `channel: text` of each message, in order. */
  readonly messages: string[] = []
  /** Number of times that messages may have been missed. */
  resubscriptions = 0

  message(channel: string, text: string): void {
    this.messages.push(`${channel}: ${text}`)
  }

  resubscribed(): void {
    this.resubscriptions++
  }
}
