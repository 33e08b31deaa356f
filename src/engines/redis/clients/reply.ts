import { RedisReplyError, type Reply } from './connection.js'

/** Converts the answer or error reply of a client package to one form, the same for both packages and protocols. */
export function plain(answer: Promise<unknown>): Promise<Reply> {
  return answer.then(plainReply, (error: unknown) => {
    throw plainError(error)
  })
}

/** Converts maps to lists of alternating keys and values, sets to lists, booleans to 0 and 1, and bytes to text. */
export function plainReply(reply: unknown): Reply {
  if (typeof reply === 'string' || typeof reply === 'number' || reply === null) return reply
  if (Array.isArray(reply)) return reply.every(isPlain) ? reply : reply.map(plainReply)
  if (reply instanceof Map) return [...reply].flat().map(plainReply)
  if (reply instanceof Set) return [...reply].map(plainReply)
  if (Buffer.isBuffer(reply)) return reply.toString()
  switch (typeof reply) {
    case 'boolean':
    case 'bigint':
      return Number(reply)
    case 'object':
      return Object.entries(reply).flat().map(plainReply)
    default:
      return null
  }
}

function isPlain(reply: unknown): reply is string | number {
  return typeof reply === 'string' || typeof reply === 'number'
}

/** Returns the time in the answer to `TIME`: milliseconds since 1970. */
export function timeOf(answer: Reply): number {
  const [seconds, micros] = answer as readonly string[]
  return Number(seconds) * 1000 + Number(micros) / 1000
}

/** An error reply of the server: a code in capitals, then a text. Errors of client packages begin differently. */
const ERROR_REPLY = /^[A-Z][A-Z0-9]+( |$)/

/** The arguments in the error for an unknown command, which may have been AUTH. */
const ARGUMENTS = /, with args beginning with:.*$/s

/**
 * Converts the rejection of a client package to a RedisReplyError if it is an error reply. Removes the arguments of the
 * command, which may be a password; ioredis keeps them with its error.
 */
export function plainError(error: unknown): unknown {
  if (!(error instanceof Error)) return error
  if (error.name === 'ReplyError' || ERROR_REPLY.test(error.message))
    return new RedisReplyError(error.message.replace(ARGUMENTS, ''))
  Reflect.deleteProperty(error, 'command')
  return error
}
