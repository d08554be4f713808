"""What everything else uses: the synonym table, masks and draws, masked predictions, dictionaries, files, errors."""
