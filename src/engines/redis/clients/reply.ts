import { RedisReplyError, type Reply } from './connection.js'

/** Brings the answer of a client package, or its error reply, into one form, whichever package and protocol. */
export function plain(answer: Promise<unknown>): Promise<Reply> {
  return answer.then(plainReply, (error: unknown) => {
    throw plainError(error)
  })
}

/**
 * Maps become lists of keys and values in turn, sets lists, doubles text, booleans 0 and 1, bytes text.
 */
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

/** The server's own words: a code in capitals, then a text. What client packages say begins otherwise. */
const ERROR_REPLY = /^[A-Z][A-Z0-9]+( |$)/

/** Makes a RedisReplyError of the rejection of a client package where the server has answered with an error. */
export function plainError(error: unknown): unknown {
  if (error instanceof Error && (error.name === 'ReplyError' || ERROR_REPLY.test(error.message)))
    return new RedisReplyError(error.message, { cause: error })
  return error
}
