import { locationKey } from '../domain/location.js'
import { trainKey, type Train } from '../domain/train.js'
import { name } from './field.js'
import type { Message } from './message.js'
import { ignored, type MessageType } from './message-type.js'
import { count, trainIn } from './state.js'

/** A train moves from its location to another, or to the same. */
export interface Move extends Message {
  readonly type: 'move'
  readonly to: string
}

/** Moves a train. Reads the location that the train leaves from its stored value. */
export const move: MessageType<Move> = {
  type: 'move',
  fields: { train: name, to: name },
  async keys(message, read) {
    const train = (await read(trainKey(message.train))) as Train | undefined
    const keys = [trainKey(message.train), locationKey(message.to)]
    if (train && train.location !== message.to) keys.push(locationKey(train.location))
    return keys
  },
  place: message => message.to,
  handle(message, transaction) {
    const train = trainIn(transaction, message.train)
    if (!train) return ignored('no such train')
    const from = train.location
    transaction.put(trainKey(train.id), { ...train, location: message.to })
    count(transaction, from, 'departed')
    count(transaction, message.to, 'arrived')
    return { event: 'moved', details: { from, to: message.to } }
  },
}
