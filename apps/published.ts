#!/usr/bin/env node
/** The command `signalbox` of the package. */
import { main } from '../src/cli/main.js'
import { chaos, mutex } from './applications.js'

void main([mutex, chaos])
